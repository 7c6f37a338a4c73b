package accounts

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// DefaultID is the account of messages that name none, and the id of the account from the configuration.
const DefaultID = "default"

// Options are the settings of Accounts. The zero value works.
type Options struct {
	// Default is the account from the configuration, or nil. Its id is DefaultID, whatever the field says.
	Default *api.Account
	// Hold is the default of accountTrouble: whether a refused account's mail waits instead of failing.
	Hold bool
	// AddressOnly: an account may send as its own address, not as all addresses of its domain.
	AddressOnly bool
	// Quota is the quota of accounts without their own.
	Quota Quota
	// InUse refuses to delete what something needs. Nil if nothing does.
	InUse records.InUse
	// Registry gets the counter of refusals by quota. Nil if they are not counted.
	Registry prometheus.Registerer
	// LookUpTXT asks the DNS for text records. Defaults to the machine's resolver.
	LookUpTXT func(ctx context.Context, name string) ([]string, error)
	// Logger gets accounts' problems, missing gateways, and failures to store outcomes. If nil, nothing is
	// logged.
	Logger *slog.Logger
	// Now is the clock, for tests. Defaults to time.Now.
	Now func() time.Time
}

// Accounts stores the accounts. It is safe for concurrent use, by any number of processes on one Redis.
type Accounts struct {
	*refusals // by quotas
	client    redisdb.Evaler
	store     *records.Store[api.Account]
	gateways  *gateways.Store
	hold      bool
	// of Options
	addressOnly bool
	quota       Quota
	lookUpTXT   func(ctx context.Context, name string) ([]string, error)
	proofs      []byte // key of senders' challenges
	log         *slog.Logger
	now         func() time.Time
	own         *api.SMTPServer // relay of the account from the configuration; nil if there is none
	configured  bool            // there is an account from the configuration
	is          string          // fingerprint of the account from the configuration

	senders *redisdb.Cache[entry]

	mu       sync.Mutex
	outcomes map[string]outcome // by account

	counting redisdb.Turn
	states   api.Connections // as they were when they were counted
	counted  time.Time       // zero means never
}

// New returns Accounts on an open database. It does no I/O. It fails if the account from the configuration is
// invalid.
func New(db *redisdb.DB, ring *seal.Ring, shared *gateways.Store, o Options) (*Accounts, error) {
	if db == nil || ring == nil || shared == nil {
		return nil, errors.New("accounts: a database, a key ring and gateways are needed")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Accounts{
		client: db.Client(), gateways: shared, hold: o.Hold, addressOnly: o.AddressOnly, log: o.Logger, now: o.Now,
		configured: o.Default != nil, quota: o.Quota, refusals: newRefusals(o),
		outcomes: map[string]outcome{}, counting: make(redisdb.Turn, 1),
	}
	if a.lookUpTXT = o.LookUpTXT; a.lookUpTXT == nil {
		a.lookUpTXT = net.DefaultResolver.LookupTXT
	}
	var err error
	if a.proofs, err = ring.Derive("senders of accounts"); err != nil {
		return nil, err
	}
	kept := records.Options[api.Account]{Now: o.Now, InUse: o.InUse}
	if o.Default != nil {
		account := *o.Default
		account.Account = DefaultID
		if err := validate(account); err != nil {
			return nil, fmt.Errorf("accounts: the account from the configuration: %w", err)
		}
		is, err := fingerprint(ring, account)
		if err != nil {
			return nil, err
		}
		a.own, a.is, kept.StandIn = account.SMTP, is, &stored{ID: DefaultID, Value: account}
	}
	kept.Forget = a.forget
	a.store = newStore(db, ring, kept)
	a.senders = redisdb.NewCache[entry](db, a.store.VersionKey(), a.forgetOutcomes)
	return a, nil
}

// fingerprint returns a hash of a configured account that reveals nothing about its secrets.
func fingerprint(ring *seal.Ring, account api.Account) (string, error) {
	key, err := ring.Derive("configured account")
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(account)
	if err != nil {
		return "", fmt.Errorf("accounts: the account from the configuration: %w", err)
	}
	sum := hmac.New(sha256.New, key)
	sum.Write(text)
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// Create stores an account. It replaces one with the same id (state "existing", else "new"). Invalid names
// every wrong field.
func (a *Accounts) Create(ctx context.Context, account api.Account) (api.AccountCreated, error) {
	state, err := a.store.Create(ctx, account.Account, func(old *stored) (api.Account, error) {
		return a.checked(ctx, account, old)
	})
	return api.AccountCreated{Account: account.Account, State: state}, err
}

// Update changes the fields of a patch; smtp, oauth2, dkim, limits and lists are replaced as a whole. If the
// account's mail is held, the next check is due immediately. Unknown account: NotFound. Invalid names every
// wrong field.
func (a *Accounts) Update(ctx context.Context, id string, p api.AccountPatch) (api.AccountInfo, error) {
	err := a.store.Update(ctx, id, func(old *stored) (api.Account, error) {
		return a.checked(ctx, patched(old.Value, p), old)
	})
	if err != nil {
		return api.AccountInfo{}, err
	}
	return a.Get(ctx, id)
}

// Get returns an account with its state, secrets masked, or NotFound.
func (a *Accounts) Get(ctx context.Context, id string) (api.AccountInfo, error) {
	s, err := a.store.Get(ctx, id)
	if err != nil {
		return api.AccountInfo{}, err
	}
	return a.info(s), nil
}

// List returns a page of accounts: first the configured one, unless an account is stored instead, then all by
// id. Pages count from 0; pageSize is 1 to 1000, zero means 20.
func (a *Accounts) List(ctx context.Context, page, pageSize int) (api.AccountPage, error) {
	p, err := a.store.Page(ctx, page, pageSize)
	return api.AccountPage{PageNumbers: api.PageNumbers{Total: p.Total, Page: p.Number, Pages: p.Pages},
		Accounts: records.Map(p, a.info)}, err
}

// info returns an account as in answers.
func (a *Accounts) info(s *stored) api.AccountInfo {
	info := api.AccountInfo{Account: s.Value, State: stateUnset, Created: s.Created, Updated: s.Updated,
		Type: "sending", SendOnly: true}
	state(s.State).show(&info, holds(s.Value, a.hold))
	return info
}

// Named returns the id of the account whose id is meets, or "" if there is none.
func (a *Accounts) Named(ctx context.Context, is func(id string) bool) (found string, err error) {
	err = a.store.Each(ctx, func(s *stored) error {
		if is(s.ID) {
			found = s.ID
		}
		return nil
	})
	return found, err
}

// Count returns the number of accounts, a configured one included.
func (a *Accounts) Count(ctx context.Context) (int, error) { return a.store.Count(ctx) }

// statesFor is how long counted states are used: to count them reads all accounts.
const statesFor = 5 * time.Second

// States counts the accounts by state, a configured one included. The counts are up to five seconds old.
func (a *Accounts) States(ctx context.Context) (api.Connections, error) {
	if err := a.counting.Take(ctx); err != nil {
		return api.Connections{}, err
	}
	defer a.counting.Give()
	now := a.now()
	if !a.counted.IsZero() && now.Sub(a.counted) < statesFor {
		return a.states, nil
	}
	n := map[string]int{}
	for number, pages := 0, 1; number < pages; number++ {
		p, err := a.List(ctx, number, 1000)
		if err != nil {
			return api.Connections{}, err
		}
		for _, info := range p.Accounts {
			n[info.State]++
		}
		pages = p.Pages
	}
	a.states = api.Connections{Unset: n[stateUnset], Connected: n[stateConnected], Error: n[stateError],
		Held: n[stateHeld]}
	a.counted = now
	return a.states, nil
}

// Delete removes a stored account. It returns NotFound, or Conflict if the account comes from the
// configuration.
func (a *Accounts) Delete(ctx context.Context, id string) error {
	err := a.store.Delete(ctx, id)
	if fault.Is(err, fault.NotFound) && a.Configured(id) {
		return fault.New(fault.Conflict, "AccountConfigured",
			"Account %q comes from the configuration (setting smtp); remove it there", id)
	}
	return err
}

// Reseal is [records.Store.Reseal].
func (a *Accounts) Reseal(ctx context.Context) (int, error) { return a.store.Reseal(ctx) }

// Configured reports whether an account with this id comes from the configuration. It exists even if no
// account is stored.
func (a *Accounts) Configured(id string) bool { return a.configured && id == DefaultID }

// notFound returns the error about an account that does not exist.
func notFound(id string) error {
	if id == DefaultID {
		return fault.New(fault.NotFound, "AccountNotFound",
			"There is no default account. Set smtp and from in the configuration, or add an account with "+
				"POST /v1/account and name it")
	}
	return fault.New(fault.NotFound, "AccountNotFound",
		"Account record was not found for requested ID; add it with POST /v1/account")
}
