package relays

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

var (
	//go:embed put.lua
	putSource string
	//go:embed delete.lua
	deleteSource string
	//go:embed met.lua
	metSource string

	putScript    = redisdb.NewScript("relays/put", putSource)
	deleteScript = redisdb.NewScript("relays/delete", deleteSource)
	metScript    = redisdb.NewScript("relays/met", metSource)
)

func gatewayKey(id string) string { return redisdb.Key(0, "gateway", id) }
func stateKey(id string) string   { return redisdb.Key(0, "gateway", id, "state") }
func indexKey() string            { return redisdb.Key(0, "gateways") }
func versionKey() string          { return redisdb.Key(0, "gateways", "version") }

// store is what Redis keeps of gateways.
type store struct{ client redis.UniversalClient }

// put stores a gateway that was read as old; false when somebody changed it meanwhile.
func (s store) put(ctx context.Context, next, old *stored) (bool, error) {
	return s.write(ctx, next, old, false)
}

// reseal is put for a gateway that is the same as before, but for the sealing of its secrets.
func (s store) reseal(ctx context.Context, next, old *stored) (bool, error) {
	return s.write(ctx, next, old, true)
}

func (s store) write(ctx context.Context, next, old *stored, keepState bool) (bool, error) {
	text, err := next.encode()
	if err != nil {
		return false, err
	}
	id, read := next.Gateway.Gateway, ""
	if old != nil {
		read = old.revision
	}
	keys := []string{gatewayKey(id), indexKey(), versionKey(), stateKey(id)}
	done, err := putScript.Run(ctx, s.client, keys, id, read, next.revision, text, keepState).Int()
	return done == 1, err
}

// load reads a gateway; nil when there is none.
func (s store) load(ctx context.Context, id string) (*stored, error) {
	if !ValidID(id) {
		return nil, nil // such as "a:state", which would be the key of something else
	}
	return readStored(id, s.client.HMGet(ctx, gatewayKey(id), "record", "revision"))
}

func readStored(id string, row *redis.SliceCmd) (*stored, error) {
	values, err := row.Result()
	if err != nil {
		return nil, err
	}
	text, ok := values[0].(string)
	if !ok {
		return nil, nil
	}
	revision, _ := values[1].(string)
	return decodeStored(id, text, revision)
}

// remove deletes a gateway and reports whether there was one.
func (s store) remove(ctx context.Context, id string) (bool, error) {
	if !ValidID(id) {
		return false, nil
	}
	keys := []string{gatewayKey(id), indexKey(), versionKey(), stateKey(id)}
	existed, err := deleteScript.Run(ctx, s.client, keys, id).Int()
	return existed == 1, err
}

// met notes what a gateway met, if it still exists.
func (s store) met(ctx context.Context, id string, u use) error {
	keys := []string{gatewayKey(id), stateKey(id)}
	return metScript.Run(ctx, s.client, keys, u.took, ms(u.last), u.state, ms(u.until), u.text, u.code, ms(u.at)).Err()
}

// page reads ids in their order.
func (s store) page(ctx context.Context, from, size int) (ids []string, total int, err error) {
	pipe := s.client.Pipeline()
	count := pipe.ZCard(ctx, indexKey())
	rows := pipe.ZRange(ctx, indexKey(), int64(from), int64(from+size-1))
	_, err = pipe.Exec(ctx)
	return rows.Val(), int(count.Val()), err
}

// after reads up to n ids that follow one in the alphabet; empty: from the first.
func (s store) after(ctx context.Context, id string, n int) ([]string, error) {
	from := "-"
	if id != "" {
		from = "(" + id
	}
	return s.client.ZRangeByLex(ctx, indexKey(), &redis.ZRangeBy{Min: from, Max: "+", Count: int64(n)}).Result()
}

// infos reads gateways with their states, as answers show them. Those that do not exist are left out.
func (r *Relays) infos(ctx context.Context, ids []string) ([]api.GatewayInfo, error) {
	pipe := r.store.client.Pipeline()
	records := make([]*redis.SliceCmd, len(ids))
	states := make([]*redis.MapStringStringCmd, len(ids))
	for i, id := range ids {
		records[i] = pipe.HMGet(ctx, gatewayKey(id), "record", "revision")
		states[i] = pipe.HGetAll(ctx, stateKey(id))
	}
	infos := make([]api.GatewayInfo, 0, len(ids))
	if len(ids) == 0 {
		return infos, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, away(err, "read %d gateways", len(ids))
	}
	for i, id := range ids {
		s, err := readStored(id, records[i])
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
	err = fmt.Errorf("relays: "+format+": %w", append(args, err)...)
	if !redisdb.Unavailable(err) {
		return err
	}
	f := fault.Wrap(err, fault.Unavailable, "RedisAway", "The message store is not available; try again shortly")
	f.RetryAfter = time.Second
	return f
}
