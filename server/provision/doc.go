// Package provision changes accounts and gateways, with all consequences, for the API and the pages. A
// changed gateway makes the accounts that list it try again. A deleted account takes its messages, tokens,
// templates and users with it.
//
// It owns no keys and keeps nothing: the packages below do. If a deletion fails half way, the same call again
// completes it. If Redis is unreachable, every call answers Unavailable.
package provision
