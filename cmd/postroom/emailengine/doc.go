// Package emailengine reads the data of an EmailEngine, over its API or from its Redis, in the words of
// Postroom's API: accounts, gateways, templates, blocklists, webhook settings, and queued mail.
//
// It only reads: it owns no keys and changes nothing in EmailEngine. What can't be taken is an [Unfit] with
// its reason, never silently left out. An error means that nothing was read to the end.
package emailengine
