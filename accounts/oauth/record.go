package oauth

import (
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/oauth2"
)

const (
	early = time.Minute // a token is replaced so long before it expires
	// spread is the longest random time that is added to early, so that tokens obtained together are not all
	// replaced together.
	spread = time.Minute
	// loginTakes is the shortest remaining lifetime with which a token is used.
	loginTakes = 5 * time.Second
	// keepRotated is the lifetime of a rotated refresh token after its last use. Google's expire after six
	// months without use, Microsoft's after 90 days.
	keepRotated = 200 * 24 * time.Hour
	// trusted is the time in which a token that replaced a refused token is not itself replaced if refused.
	trusted = time.Minute
)

// record is the tokens of an owner, sealed in Redis.
type record struct {
	Access   string    `json:"access"`
	Obtained time.Time `json:"obtained"`
	Due      time.Time `json:"due"` // when to replace it
	Expires  time.Time `json:"expires"`
	Refused  bool      `json:"refused,omitempty"` // it replaced a token that a relay refused
	Refresh  string    `json:"refresh,omitempty"` // rotated; empty if the configured token is the latest
	Grant    string    `json:"grant"`             // of [Client.grant]
	Scope    string    `json:"scope,omitempty"`   // the request's
}

// serves reports whether the token can be used and need not be replaced.
func (r *record) serves(c Client, now time.Time, refused string) bool {
	return now.Before(r.Due) && r.lives(c, now, refused)
}

// lives reports whether the token can be used.
func (r *record) lives(c Client, now time.Time, refused string) bool {
	return r.Access != "" && r.Access != refused && now.Before(r.Expires.Add(-loginTakes)) &&
		r.Scope == c.Scope && r.Grant == c.grant()
}

// follow returns the record after a request gave a token. jitter is at least 0 and below 1.
func (r *record) follow(c Client, got *oauth2.Token, refused string, asked time.Time, jitter float64) record {
	life := lives(got)
	next := record{
		Access: got.AccessToken, Obtained: asked, Due: asked.Add(freshFor(life, jitter)), Expires: asked.Add(life),
		Refused: refused != "" && refused == r.Access, Grant: c.grant(), Scope: c.Scope,
	}
	if got.RefreshToken != c.RefreshToken { // the one that was sent, unless the server rotates
		next.Refresh = got.RefreshToken
	}
	return next
}

// freshFor returns the time until a token is replaced: one to two minutes less than its lifetime. A token
// that lives for little more than a minute is replaced after half its lifetime.
func freshFor(life time.Duration, jitter float64) time.Duration {
	if life < early*5/4 {
		return life / 2
	}
	return max(life-early-time.Duration(jitter*float64(spread)), min(life-early, life/2))
}

// keep returns the lifetime of the record in Redis: as long as a token in it can be used.
func (r *record) keep(now time.Time) time.Duration {
	if r.Refresh != "" {
		return keepRotated
	}
	return max(r.Expires.Sub(now), 0) + time.Minute
}

// refreshTokens returns the refresh tokens to try, the likeliest first. The configured token may be valid if
// the rotated one isn't, because Redis was restored from a backup, or another program rotated it.
func (r *record) refreshTokens(c Client) []string {
	if r.Refresh == "" || r.Grant != c.grant() {
		return []string{c.RefreshToken}
	}
	return []string{r.Refresh, c.RefreshToken}
}

// same reports whether two records have the same tokens.
func (r *record) same(other record) bool {
	return r.Access == other.Access && r.Refresh == other.Refresh && r.Grant == other.Grant
}

// place returns the name that a sealed record is bound to.
func place(owner string) string { return "oauth:" + owner }

// seal returns the record as it is stored.
func (t *Tokens) seal(owner string, r record) (string, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("write the token record of %s: %w", owner, err)
	}
	return t.ring.Seal(plain, place(owner)), nil
}

// open reads a stored record. One that can't be opened is logged and counts as absent: the configured refresh
// token may be enough.
func (t *Tokens) open(owner, sealed string) record {
	var r record
	if sealed == "" {
		return r
	}
	plain, err := t.ring.Open(sealed, place(owner))
	if err == nil {
		err = json.Unmarshal(plain, &r)
	}
	if err != nil {
		t.log.Error("a stored access token can't be opened; a new one is asked for", "owner", owner, "error", err)
		return record{}
	}
	return r
}

// Format prints a record without its tokens.
func (r record) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "token until %s", r.Expires) }
