// Package oidc asks another server who somebody is: OpenID Connect Core 1.0, the authorization code flow,
// with PKCE (RFC 7636).
//
// [Issuer.Begin] returns the URL that a browser is sent to, and a secret for a cookie of that browser.
// [Issuer.Finish] takes the secret and what the browser came back with, and returns who logged in, and
// with which role.
//
// It promises:
//
//   - Only the browser that began a login can finish it: state, nonce and the verifier of PKCE are derived
//     from the secret in its cookie. Nothing is stored on the server, so anonymous clients can't fill it with
//     unfinished logins.
//   - An identity requires a token from the issuer that is signed with one of its present keys, for our
//     client, for this login, and not expired.
//   - An address is an identity's name only if the issuer says that it is verified.
//   - The issuer is asked when it is first needed, and once an hour for its configuration. A process starts
//     without it, and other logins work while it is unavailable.
//   - No secret, code or token is in an error.
//
// It keeps nothing and owns no keys in Redis. Package people decides whether an identity is a person here,
// and the person's rights.
package oidc
