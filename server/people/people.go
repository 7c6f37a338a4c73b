package people

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// tries bounds the attempts at a change while other changes come first.
const tries = 5

// record is a person's stored data, sealed.
type record struct {
	Name     string        `json:"name"`
	Role     api.Role      `json:"role"`
	Accounts []string      `json:"accounts,omitempty"`
	Identity *api.Identity `json:"identity,omitempty"`
	Alias    string        `json:"alias,omitempty"` // name at the issuer, if it is another one by now
	Disabled bool          `json:"disabled,omitempty"`
	Created  time.Time     `json:"created"`
	Updated  time.Time     `json:"updated"`

	Password string   `json:"password,omitempty"` // PHC string; empty if none is set
	TOTP     string   `json:"totp,omitempty"`     // base32 secret; empty means no second factor
	Step     int64    `json:"step,omitempty"`     // the last used code's
	Pending  string   `json:"pending,omitempty"`  // secret that waits for its first code
	Recovery []string `json:"recovery,omitempty"` // SHA-256 of the codes that are left

	LastLogin time.Time      `json:"lastLogin,omitzero"`
	Address   string         `json:"address,omitempty"`  // from the last login
	Networks  []netip.Prefix `json:"networks,omitempty"` // from logins, last first
	// Epoch is random, and replaced by each change that ends sessions.
	Epoch string `json:"epoch"`
}

func (r *record) info() api.PersonInfo {
	p := api.PersonInfo{Person: r.Name, Role: r.Role, Accounts: r.Accounts, Identity: r.Identity,
		Alias: r.Alias, Disabled: r.Disabled,
		Invited: r.Password == "" && r.Identity == nil, TOTP: r.TOTP != "", RecoveryCodes: len(r.Recovery),
		Created: r.Created,
		Updated: r.Updated, LastAddress: r.Address}
	if p.Accounts == nil {
		p.Accounts = []string{}
	}
	if !r.LastLogin.IsZero() {
		p.LastLogin = &r.LastLogin
	}
	return p
}

// Holder is a person who has sessions.
type Holder struct {
	Name     string
	Role     api.Role
	Accounts []string // the only ones; empty means all
	Epoch    string   // a session of another epoch has ended
}

func (r *record) holder() *Holder { return &Holder{r.Name, r.Role, r.Accounts, r.Epoch} }

// Options are the settings of People. The zero value works.
type Options struct {
	Logger         *slog.Logger // nil if nothing is logged
	PasswordMemory uint32       // kB that a new password costs, for tests; defaults to 64 MiB
}

// People keeps people's records. It is safe for concurrent use, by any number of processes on one Redis.
type People struct {
	store  store
	log    *slog.Logger
	known  *redisdb.Cache[*Holder]
	hashes hasher
}

// New returns People on an open database. It does no I/O.
func New(db *redisdb.DB, ring *seal.Ring, o Options) (*People, error) {
	if db == nil || ring == nil {
		return nil, errors.New("people: a database and a key ring are needed")
	}
	return &People{
		store: store{db.Client(), ring}, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		known: redisdb.NewCache[*Holder](db, versionKey(), nil), hashes: newHasher(o.PasswordMemory),
	}, nil
}

// Find returns a person who may have sessions, usually from a cache at most a second old. It returns nil if
// there is none, or if the person is disabled.
func (p *People) Find(ctx context.Context, name string, now time.Time) (*Holder, error) {
	h, _, err := p.known.Get(ctx, name, now, func(ctx context.Context) (*Holder, bool, error) {
		r, _, err := p.store.load(ctx, name)
		if _, ok := errors.AsType[*refused](err); ok {
			p.log.ErrorContext(ctx, "person refused", "person", name, "reason", err)
			return nil, false, nil
		}
		if err != nil || r == nil || r.Disabled {
			return nil, false, err
		}
		return r.holder(), true, nil
	})
	if redisdb.Unavailable(err) && fault.KindOf(err) == fault.Internal {
		err = redisdb.Failed(err, "people: look up a person")
	}
	return h, err
}

// change replaces a person's record by edit's result, or returns NotFound. If another change comes first,
// edit is called again. A nil edit deletes the person.
func (p *People) change(ctx context.Context, name string, edit func(*record) error) (*record, error) {
	for range tries {
		r, before, err := p.store.load(ctx, name)
		switch _, forged := errors.AsType[*refused](err); {
		case forged && edit == nil: // it can be deleted
		case forged:
			return nil, fault.Wrap(err, fault.Conflict, "PersonRefused",
				"The record of %s was modified outside Postroom. Delete the user and create it again", name)
		case err != nil:
			return nil, err
		case r == nil:
			return nil, personNotFound()
		}
		var was *api.Identity
		if r != nil {
			was = r.Identity
		}
		if edit == nil {
			r = nil
		} else if err := edit(r); err != nil {
			return nil, err
		}
		done, err := p.store.put(ctx, name, before, was, r)
		if err != nil {
			return nil, err
		}
		if done {
			p.known.Clear()
			return r, nil
		}
	}
	return nil, fault.New(fault.Conflict, "PersonChanged", "Other requests are changing the user %s. Try "+
		"again",
		name)
}

// Create makes a person without a password. A name that is taken is a Conflict.
func (p *People) Create(ctx context.Context, req api.PersonRequest, now time.Time) (api.PersonInfo, error) {
	req.Person = canonical(req.Person)
	if err := validate(req); err != nil {
		return api.PersonInfo{}, err
	}
	return p.create(ctx, req, "", now)
}

// create makes a person with a password's hash, which may be empty.
func (p *People) create(ctx context.Context, req api.PersonRequest, password string,
	now time.Time) (api.PersonInfo,
	error) {
	r := &record{Name: req.Person, Role: req.Role, Accounts: unique(req.Accounts), Identity: req.Identity,
		Created: stamp(now), Updated: stamp(now), Password: password, Epoch: rand.Text()}
	done, err := p.store.put(ctx, r.Name, "", nil, r)
	switch {
	case err != nil:
		return api.PersonInfo{}, err
	case !done:
		if r.Identity != nil {
			if other, _ := p.store.nameOf(ctx, *r.Identity); other != "" {
				return api.PersonInfo{}, fault.New(fault.Conflict, "PersonExists",
					"This account at %s already belongs to the user %s", r.Identity.Issuer, other)
			}
		}
		return api.PersonInfo{}, fault.New(fault.Conflict, "PersonExists", "There is already a user "+
			"%s", r.Name)
	}
	p.known.Clear()
	return r.info(), nil
}

// Get returns a person, or NotFound.
func (p *People) Get(ctx context.Context, name string) (api.PersonInfo, error) {
	r, _, err := p.store.load(ctx, canonical(name))
	if f, ok := errors.AsType[*refused](err); ok {
		return f.info(), nil
	}
	switch {
	case err != nil:
		return api.PersonInfo{}, err
	case r == nil:
		return api.PersonInfo{}, personNotFound()
	}
	return r.info(), nil
}

// info returns a person whose record Postroom did not write.
func (r *refused) info() api.PersonInfo {
	return api.PersonInfo{Person: r.name, Accounts: []string{},
		Refused: "Its record was not written by Postroom: " + r.err.Error()}
}

// List returns a page of people, in the order of their names. Pages count from 0; size is 1 to 1000, zero
// means 20.
func (p *People) List(ctx context.Context, page, size int) (api.PersonPage, error) {
	q := api.PageQuery{Page: max(0, page), PageSize: size}
	names, total, err := p.store.names(ctx, q.Page*q.Size(), q.Size())
	if err != nil {
		return api.PersonPage{}, err
	}
	numbers, _, _ := q.Of(total)
	out := api.PersonPage{PageNumbers: numbers, People: []api.PersonInfo{}}
	for _, name := range names {
		one, err := p.Get(ctx, name)
		if err != nil && !fault.Is(err, fault.NotFound) { // it was deleted just now
			return api.PersonPage{}, err
		}
		if err == nil {
			out.People = append(out.People, one)
		}
	}
	return out, nil
}

// Update changes a person, and ends the sessions of the person.
func (p *People) Update(ctx context.Context, name string, patch api.PersonPatch,
	now time.Time) (api.PersonInfo,
	error) {
	return p.edit(ctx, name, now, func(r *record) error {
		req := api.PersonRequest{Person: r.Name, Role: r.Role, Accounts: r.Accounts, Identity: r.Identity}
		api.Set(&req.Role, patch.Role)
		api.Set(&req.Accounts, patch.Accounts)
		api.Set(&r.Disabled, patch.Disabled)
		r.Role, r.Accounts = req.Role, unique(req.Accounts)
		return validate(req)
	})
}

// edit is change for what ends the sessions of the person.
func (p *People) edit(ctx context.Context, name string, now time.Time,
	edit func(*record) error) (api.PersonInfo,
	error) {
	r, err := p.change(ctx, canonical(name), func(r *record) error {
		r.Updated, r.Epoch = stamp(now), rand.Text()
		return edit(r)
	})
	if err != nil {
		return api.PersonInfo{}, err
	}
	return r.info(), nil
}

// Delete removes a person, and reports whether there was one. Its sessions and links end.
func (p *People) Delete(ctx context.Context, name string) (bool, error) {
	_, err := p.change(ctx, canonical(name), nil)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// ForgetAccount takes a deleted account from the people who are bound to it, and returns their number. It
// disables people who have no other account, so that a later account of the same name is not theirs.
func (p *People) ForgetAccount(ctx context.Context, account string, now time.Time) (int, error) {
	names, _, err := p.store.names(ctx, 0, 0)
	if err != nil {
		return 0, err
	}
	changed := 0
	for _, name := range names {
		r, _, err := p.load(ctx, name)
		if err == nil && (r == nil || !slices.Contains(r.Accounts, account)) {
			continue
		}
		if err == nil {
			_, err = p.edit(ctx, name, now, func(r *record) error {
				others := slices.DeleteFunc(slices.Clone(r.Accounts), func(a string) bool { return a == account })
				if len(others) == 0 {
					r.Disabled = true // without accounts, all would be seen
					return nil
				}
				r.Accounts = others
				return nil
			})
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// EndSessions ends all sessions of a person.
func (p *People) EndSessions(ctx context.Context, name string, now time.Time) (api.PersonInfo, error) {
	return p.edit(ctx, name, now, func(*record) error { return nil })
}

// Count returns the number of people.
func (p *People) Count(ctx context.Context) (int, error) {
	_, total, err := p.store.names(ctx, 0, 1)
	return total, err
}

// Reseal seals the records that are sealed under an older secret of the instance under the current one, and
// returns their number. It may be run again. Links are not renewed: those under an older secret end.
func (p *People) Reseal(ctx context.Context) (int, error) {
	names, _, err := p.store.names(ctx, 0, 0)
	if err != nil {
		return 0, err
	}
	changed := 0
	var failed []error
	for _, name := range names {
		text, err := p.store.client.Get(ctx, personKey(name)).Result()
		if err != nil {
			failed = append(failed, redisdb.Failed(err, "people: read person %s", name))
			continue
		}
		next, needed, err := p.store.ring.Renew(text, recordName(name))
		if err == nil && needed {
			needed, err = p.store.write(ctx, putArgs{name, text, next, false}) // false if changed, so it is new
		}
		if err != nil {
			failed = append(failed, &refused{name, err})
		}
		if err == nil && needed {
			changed++
		}
	}
	return changed, errors.Join(failed...)
}

// canonical returns a name as it is stored.
func canonical(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

func stamp(now time.Time) time.Time { return now.UTC().Truncate(time.Millisecond) }

// unique returns accounts without repetitions, in order.
func unique(accounts []string) []string {
	var out []string
	for _, a := range accounts {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}
