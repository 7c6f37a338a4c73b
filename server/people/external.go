package people

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/netip"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// External is a login at another issuer, which that has confirmed.
type External struct {
	Identity api.Identity
	Name     string   // the person's name here
	Role     api.Role // that the issuer gives; if empty, the person must exist and has its record's role
}

// LoginExternal admits someone who logged in at another issuer, and stores the login. A person of that name
// who was created for the issuer without a subject gets the subject of this first login. From then on only
// that subject is the person, whatever name the issuer gives it. With a role, somebody unknown becomes a
// person, and a known person gets the role. The error is a *WrongLogin of kind Forbidden, or Unavailable.
func (p *People) LoginExternal(ctx context.Context, x External, addr netip.Addr, from netip.Prefix,
	now time.Time) (*Holder, error) {
	x.Name = canonical(x.Name)
	for range tries {
		name, err := p.store.nameOf(ctx, x.Identity)
		if err != nil {
			return nil, err
		}
		name = cmp.Or(name, x.Name)
		if !names.MatchString(name) {
			return nil, forbidden("", "NameUnfit",
				"The name that %s tells can't be one here: a name has up to 128 letters, digits or . _ - + @",
				x.Identity.Issuer)
		}
		r, err := p.change(ctx, name, func(r *record) error { return r.enter(x, addr, from, now) })
		switch {
		case err == nil:
			return r.holder(), nil
		case !fault.Is(err, fault.NotFound):
			return nil, redisdb.Failed(err, "people: log in %s", name)
		case x.Role == "":
			return nil, forbidden(name, "NoPerson",
				"There is no person %s here; an admin has to create it for %s", name, x.Identity.Issuer)
		}
		_, err = p.Create(ctx, api.PersonRequest{Person: name, Role: x.Role, Identity: &x.Identity}, now)
		if err != nil && !fault.Is(err, fault.Conflict) { // a login at the same time may have come first
			return nil, err
		}
		p.log.InfoContext(ctx, "person created at the first login", "person", name, "role", x.Role,
			"issuer", x.Identity.Issuer)
	}
	return nil, fault.New(fault.Conflict, "PersonChanged", "Other requests are changing the user %s. Try "+
		"again",
		x.Name)
}

// enter stores a login from another issuer, or returns why it is refused.
func (r *record) enter(x External, addr netip.Addr, from netip.Prefix, now time.Time) error {
	issuer := x.Identity.Issuer
	switch id := r.Identity; {
	case r.Disabled:
		return forbidden(r.Name, "PersonDisabled", "The person %s is disabled", r.Name)
	case id == nil:
		return forbidden(r.Name, "OtherLogin", "The person %s logs in with a password, not at %s", r.Name, issuer)
	case id.Issuer != issuer:
		return forbidden(r.Name, "OtherLogin", "The person %s logs in at %s, not at %s", r.Name, id.Issuer, issuer)
	case id.Subject != "" && id.Subject != x.Identity.Subject:
		return forbidden(r.Name, "OtherUser",
			"The user %s is linked to another account at %s. If the account there was created again, delete the user here",
			r.Name, issuer)
	}
	r.Identity, r.Alias = &x.Identity, ""
	if x.Name != r.Name {
		r.Alias = x.Name
	}
	if x.Role != "" && x.Role != r.Role {
		r.Role, r.Updated, r.Epoch = x.Role, stamp(now), rand.Text()
		if x.Role == api.RoleAdmin {
			r.Accounts = nil
		}
	}
	r.entered(addr, from, now)
	return nil
}

// forbidden refuses a login that proved who it is.
func forbidden(person, code, format string, args ...any) error {
	return &WrongLogin{person, fault.New(fault.Forbidden, code, format, args...)}
}
