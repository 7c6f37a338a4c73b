package relays

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
)

var (
	//go:embed changed.lua
	changedSource string
	//go:embed met.lua
	metSource string

	metScript = redisdb.NewScript("relays/met", metSource)
)

// store is what Redis keeps of gateways.
type store struct {
	client  redis.UniversalClient
	records *redisdb.Records
}

func newStore(db *redisdb.DB) store {
	return store{client: db.Client(), records: redisdb.NewRecords(db, "gateway", "gateways", changedSource)}
}

// put stores a gateway that was read as old; false when somebody changed it meanwhile.
func (s store) put(ctx context.Context, next, old *stored) (bool, error) {
	return s.write(ctx, next, old, false)
}

// reseal is put for a gateway that is the same as before, but for the sealing of its secrets.
func (s store) reseal(ctx context.Context, next, old *stored) (bool, error) {
	return s.write(ctx, next, old, true)
}

func (s store) write(ctx context.Context, next, old *stored, keepState bool) (bool, error) {
	record, err := next.encode()
	if err != nil {
		return false, err
	}
	read := ""
	if old != nil {
		read = old.revision
	}
	return s.records.Put(ctx, record, read, keepState)
}

// load reads a gateway; nil when there is none.
func (s store) load(ctx context.Context, id string) (*stored, error) {
	if !ValidID(id) {
		return nil, nil // such as "a:state", which would be the key of something else
	}
	found, err := s.records.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	return decodeStored(found[0])
}

// readStored takes what was asked for in a pipeline.
func readStored(read func() (redisdb.Record, error)) (*stored, error) {
	record, err := read()
	if err != nil {
		return nil, err
	}
	return decodeStored(record)
}

// remove deletes a gateway and reports whether there was one.
func (s store) remove(ctx context.Context, id string) (bool, error) {
	if !ValidID(id) {
		return false, nil
	}
	return s.records.Remove(ctx, id)
}

// met notes what a gateway met, if it still exists.
func (s store) met(ctx context.Context, id string, u use) error {
	keys := []string{s.records.Key(id), s.records.StateKey(id)}
	return metScript.Run(ctx, s.client, keys, u.took, ms(u.last), u.state, ms(u.until), u.text, u.code, ms(u.at)).Err()
}

// infos reads gateways with their states, as answers show them. Those that do not exist are left out.
func (r *Relays) infos(ctx context.Context, ids []string) ([]api.GatewayInfo, error) {
	pipe := r.store.client.Pipeline()
	records := make([]func() (redisdb.Record, error), len(ids))
	states := make([]*redis.MapStringStringCmd, len(ids))
	for i, id := range ids {
		records[i] = r.store.records.Read(ctx, pipe, id)
		states[i] = pipe.HGetAll(ctx, r.store.records.StateKey(id))
	}
	infos := make([]api.GatewayInfo, 0, len(ids))
	if len(ids) == 0 {
		return infos, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, away(err, "read %d gateways", len(ids))
	}
	for i := range ids {
		s, err := readStored(records[i])
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		info := api.GatewayInfo{Gateway: masked(s.Gateway), State: stateUnset, Created: s.Created, Updated: s.Updated}
		readState(&info, states[i].Val(), r.now())
		infos = append(infos, info)
	}
	return infos, nil
}

// readState puts what a gateway met into an answer. A rest that is over is an error still, until the next use says otherwise.
func readState(info *api.GatewayInfo, values map[string]string, now time.Time) {
	if state := values["state"]; state != "" {
		info.State = state
	}
	if info.State == stateOpen {
		if until, ok := timeOf(values["until"]); !ok || !now.Before(until) {
			info.State = stateError
		}
	}
	info.Deliveries, _ = strconv.ParseInt(values["deliveries"], 10, 64) // zero without
	if last, ok := timeOf(values["lastUse"]); ok {
		info.LastUse = &last
	}
	if at, ok := timeOf(values["lastErrorAt"]); ok {
		info.LastError = &api.GatewayError{Response: values["lastError"], ServerResponseCode: values["lastCode"], Time: at}
	}
}

// ms writes a time as Redis has it; no time is 0.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(text string) (time.Time, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(n).UTC(), err == nil && n > 0
}

// away says what was tried when Redis failed, and tells clients to come back when that is all it was.
func away(err error, format string, args ...any) error {
	return redisdb.Away(fmt.Errorf("relays: "+format+": %w", append(args, err)...))
}
