package gateways

import (
	"embed"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

//go:embed *.lua
var lua embed.FS

var metScript = redisdb.NewScript[met, bool]("gateways/met", redisdb.Source(lua, "met.lua"))

var hookScript = redisdb.NewScript[hooked, bool]("gateways/hook", redisdb.Source(lua, "hook.lua"))

// stored is the record of a gateway.
type stored = records.Record[api.Gateway]

func newStore(db *redisdb.DB, ring *seal.Ring, o records.Options[api.Gateway]) *records.Store[api.Gateway] {
	return records.New(db, ring, records.Kind[api.Gateway]{
		Key: "gateway", Index: "gateways", Name: "gateway", Code: "GatewayChanged", Missing: notFound,
		Changed: redisdb.Source(lua, "changed.lua"), Secrets: gatewaySecrets,
	}, o)
}

// record returns the name of a gateway's record. Its connections are counted under that name.
func record(id string) string { return "gateway:" + id }

// info returns a gateway as in answers.
func (s *Store) info(g *stored) api.GatewayInfo {
	info := api.GatewayInfo{Gateway: g.Value, State: stateUnset, Created: g.Created, Updated: g.Updated}
	readState(&info, g.State, s.now())
	info.Webhook = s.readHook(g)
	return info
}

// readState copies the state of a gateway into an answer. After a rest the state is error until the next use.
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
