package relays

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

// stored is a gateway as Redis has it: its secrets are sealed.
type stored struct {
	Gateway  api.Gateway `json:"gateway"`
	Created  time.Time   `json:"created"`
	Updated  time.Time   `json:"updated"`
	revision string      // changes with every write; empty: nothing is stored
}

// record names a gateway's record, which is what its sealed secrets are bound to and what its connections are counted under.
func record(id string) string { return "gateway:" + id }

func (s stored) encode() (redisdb.Record, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return redisdb.Record{}, fmt.Errorf("encode gateway %s: %w", s.Gateway.Gateway, err)
	}
	return redisdb.Record{ID: s.Gateway.Gateway, Text: string(text), Revision: s.revision}, nil
}

// decodeStored reads a record; nil when there is none.
func decodeStored(record redisdb.Record) (*stored, error) {
	if record.Revision == "" {
		return nil, nil
	}
	s := &stored{revision: record.Revision}
	if err := json.Unmarshal([]byte(record.Text), s); err != nil {
		return nil, fmt.Errorf("read the record of gateway %s: %w", record.ID, err)
	}
	return s, nil
}

// validate reports everything wrong with a gateway at once.
func validate(g api.Gateway) error {
	var f Faults
	f.ID("gateway", g.Gateway)
	f.Text("name", g.Name, 256)
	settings := ofGateway(g)
	most := settings.Limits()
	f.warmup(g.Warmup, &most)
	return fault.InvalidFields(append(f, settings.Check()...))
}

// sealed makes the record of a gateway, with the masked secrets taken over from the record before.
func (r *Relays) sealed(g api.Gateway, old *stored) (*stored, error) {
	now := r.now().UTC().Truncate(time.Millisecond)
	next := &stored{Created: now, Updated: now, revision: rand.Text()}
	var before Secrets
	if old != nil {
		next.Created, before = old.Created, ofGateway(old.Gateway).Secrets()
	}
	settings := ofGateway(g)
	wrong := settings.Secrets().Seal(r.ring, record(g.Gateway), before)
	next.Gateway = settings.intoGateway(g)
	next.Gateway.Warmup = begun(g.Warmup, now)
	return next, fault.InvalidFields(wrong)
}

// masked gives a gateway as answers show it.
func masked(g api.Gateway) api.Gateway {
	settings := ofGateway(g)
	settings.Secrets().Mask()
	return settings.intoGateway(g)
}

// patched lays the fields that a patch has over a gateway. A login that the patch names replaces one of the other kind.
func patched(g api.Gateway, p api.GatewayPatch) api.Gateway {
	set(&g.Name, p.Name)
	set(&g.Preset, p.Preset)
	set(&g.Host, p.Host)
	set(&g.Port, p.Port)
	set(&g.Secure, p.Secure)
	set(&g.User, p.User)
	set(&g.Pass, p.Pass)
	set(&g.Proxy, p.Proxy)
	set(&g.LocalAddress, p.LocalAddress)
	set(&g.SMTPEhloName, p.SMTPEhloName)
	if p.TLS != nil {
		g.TLS = p.TLS
	}
	if p.Limits != nil {
		g.Limits = p.Limits
	}
	if p.Warmup != nil {
		g.Warmup = p.Warmup
	}
	byPassword := p.User != nil && *p.User != "" || p.Pass != nil && *p.Pass != ""
	switch {
	case p.OAuth2 != nil && !byPassword:
		g.OAuth2, g.User, g.Pass = p.OAuth2, "", ""
	case p.OAuth2 != nil:
		g.OAuth2 = p.OAuth2 // both were named: validate tells
	case byPassword:
		g.OAuth2 = nil
	}
	return g
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
