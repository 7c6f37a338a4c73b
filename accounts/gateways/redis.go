package gateways

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/redisdb/records"
	"github.com/postroom/postroom/redisdb/seal"
)

var (
	//go:embed changed.lua
	changedSource string
	//go:embed met.lua
	metSource string

	metScript = redisdb.NewRawScript("relays/met", metSource)
)

// stored is a gateway as it is kept.
type stored = records.Record[api.Gateway]

func newStore(db *redisdb.DB, ring *seal.Ring, o records.Options[api.Gateway]) *records.Store[api.Gateway] {
	return records.New(db, ring, records.Kind[api.Gateway]{
		Key: "gateway", Index: "gateways", Name: "gateway", Code: "GatewayChanged", Missing: notFound,
		Changed: changedSource, Secrets: gatewaySecrets,
	}, o)
}

// record names a gateway's record, which is what its connections are counted under.
func record(id string) string { return "gateway:" + id }

// met notes what a gateway met, if it still exists.
func (s *Store) met(ctx context.Context, id string, u use) error {
	keys := []string{s.store.Key(id), s.store.StateKey(id)}
	return metScript.Run(ctx, s.client, keys, u.took, redisdb.Millis(u.last), u.state, redisdb.Millis(u.until),
		u.text, u.code, redisdb.Millis(u.at)).Err()
}

// info is a gateway as answers show it.
func (s *Store) info(g *stored) api.GatewayInfo {
	info := api.GatewayInfo{Gateway: g.Value, State: stateUnset, Created: g.Created, Updated: g.Updated}
	readState(&info, g.State, s.now())
	return info
}

// readState puts what a gateway met into an answer. A rest that is over is an error still, until the next use
// says otherwise.
func readState(info *api.GatewayInfo, values map[string]string, now time.Time) {
	if state := values["state"]; state != "" {
		info.State = state
	}
	if info.State == stateOpen {
		if !now.Before(redisdb.ParseTime(values["until"])) {
			info.State = stateError
		}
	}
	info.Deliveries, _ = strconv.ParseInt(values["deliveries"], 10, 64) // zero without
	if last := redisdb.ParseTime(values["lastUse"]); !last.IsZero() {
		info.LastUse = &last
	}
	if at := redisdb.ParseTime(values["lastErrorAt"]); !at.IsZero() {
		info.LastError = &api.GatewayError{Response: values["lastError"], ServerResponseCode: values["lastCode"],
			Time: at}
	}
}
