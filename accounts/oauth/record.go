package oauth

import (
	"encoding/json"
	"fmt"
	"time"
)

const (
	early = time.Minute // before it expires a token is replaced
	// spread is by how much earlier still at most: tokens that were had together must not all be asked for
	// together.
	spread = time.Minute
	// loginTakes is what a token must live for to be of any use.
	loginTakes = 5 * time.Second
	// keepRotated is how long a rotated refresh token is kept after its last use. Google's end after six months
	// without use, Microsoft's after 90 days.
	keepRotated = 200 * 24 * time.Hour
	// loyal is how long a token that replaced a refused one is not replaced for being refused.
	loyal = time.Minute
)

// record is what is known of an owner's tokens, sealed in Redis.
type record struct {
	Access   string    `json:"access"`
	Obtained time.Time `json:"obtained"`
	Due      time.Time `json:"due"`     // when to replace it
	Expires  time.Time `json:"expires"` // when it ends
	Refused  bool      `json:"refused,omitempty"`
	Refresh  string    `json:"refresh,omitempty"` // rotated; empty: the configured one is the latest
	Grant    string    `json:"grant"`             // [Client.grant] it belongs to
	Scope    string    `json:"scope,omitempty"`   // that was asked for
}

// serves says whether the token can be used without more ado.
func (r *record) serves(c Client, now time.Time, refused string) bool {
	return now.Before(r.Due) && r.lives(c, now, refused)
}

// lives says whether the token can be used at all.
func (r *record) lives(c Client, now time.Time, refused string) bool {
	return r.Access != "" && r.Access != refused && now.Before(r.Expires.Add(-loginTakes)) &&
		r.Scope == c.Scope && r.Grant == c.grant()
}

// follow makes the record after an answer to a request with one of the refresh tokens. Jitter is at least 0
// and below 1.
func (r *record) follow(c Client, got answer, used, refused string, asked time.Time, jitter float64) record {
	life := got.lives()
	next := record{
		Access: got.AccessToken, Obtained: asked, Due: asked.Add(freshFor(life, jitter)), Expires: asked.Add(life),
		Refused: refused != "" && refused == r.Access, Grant: c.grant(), Scope: c.Scope,
	}
	switch rotated := got.RefreshToken; {
	case rotated != "" && rotated != c.RefreshToken:
		next.Refresh = rotated
	case rotated == "" && used != c.RefreshToken:
		next.Refresh = used
	}
	return next
}

// freshFor is for how long a token that lives for some time is used: until a minute before its end, or
// somewhat more. One that lives for little more than a minute is used for half its life.
func freshFor(life time.Duration, jitter float64) time.Duration {
	if life < early*5/4 {
		return life / 2
	}
	return max(life-early-time.Duration(jitter*float64(spread)), min(life-early, life/2))
}

// keep is how long Redis keeps the record: as long as there is anything of use in it.
func (r *record) keep(now time.Time) time.Duration {
	if r.Refresh != "" {
		return keepRotated
	}
	return max(r.Expires.Sub(now), 0) + time.Minute
}

// refreshTokens are those to ask with, the likeliest first. The configured one may still be good when the
// rotated one is not: the Redis was restored from a backup, or somebody else rotated.
func (r *record) refreshTokens(c Client) []string {
	if r.Refresh == "" || r.Grant != c.grant() {
		return []string{c.RefreshToken}
	}
	return []string{r.Refresh, c.RefreshToken}
}

// same says whether nothing was asked for between two records.
func (r *record) same(other record) bool {
	return r.Access == other.Access && r.Refresh == other.Refresh && r.Grant == other.Grant
}

// place names where a record belongs, and the only place where it opens.
func place(owner string) string { return "oauth:" + owner }

// seal gives the record as Redis gets it.
func (t *Tokens) seal(owner string, r record) (string, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("write the token record of %s: %w", owner, err)
	}
	return t.ring.Seal(plain, place(owner)), nil
}

// open reads what Redis has. What can't be opened is told and counts as absent: the configured refresh token
// may be enough.
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

// Format keeps the tokens out of whatever prints a record.
func (r record) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "token until %s", r.Expires) }
