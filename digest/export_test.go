package digest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// Work does what is due now, once, in all shards. It returns how much that was. Tests that move the clock
// call it instead of Run.
func (d *Digests) Work(ctx context.Context) (int, error) {
	found, err := d.works.look(ctx)
	var all sync.WaitGroup
	for _, h := range found {
		all.Go(func() { d.works.attend(ctx, h) })
	}
	all.Wait()
	return len(found), err
}

// WouldSay returns the groups of a preview.
func (d *Digests) WouldSay(ctx context.Context, recipient string) ([]api.DigestGroup, error) {
	one, err := d.find(ctx, "", "", recipient)
	if err != nil {
		return nil, err
	}
	all, err := d.waiting(ctx, one)
	_, kept := digestOf(all, &run{manner: manner{Cap: 50, Category: 50}})
	return kept.Groups, err
}

// The faults below are planted by the test that the model finds them.

// PeriodByInstant names periods by the date in UTC at which a run begins, not by the local date that was
// asked for.
func (d *Digests) PeriodByInstant() {
	right := d.works.decide
	d.works.decide = func(r *recipient, schedule string, kinds map[string]*api.DigestKind,
		since, now time.Time) planned {
		p := right(r, schedule, kinds, since, now)
		if mode, _, _ := strings.Cut(schedule, "@"); mode == "daily" && p.period != "" {
			p.period = now.UTC().Format(time.DateOnly)
			for _, category := range p.categories {
				p.lasts[lastField+mode+":"+category] = p.period
			}
		}
		return p
	}
}

// RunByInstant names runs by the instant at which they begin, not by their period.
func (d *Digests) RunByInstant() {
	right := d.works.decide
	d.works.decide = func(r *recipient, schedule string, kinds map[string]*api.DigestKind,
		since, now time.Time) planned {
		p := right(r, schedule, kinds, since, now)
		if p.period != "" {
			p.period = now.UTC().Format(instant)
		}
		return p
	}
}

// SnapshotByTime has a run copy waiting events, and at its end delete events that waited before its begin. It
// changes the scripts of all Digests until restore is called.
func SnapshotByTime() (restore func()) {
	open, close := openScript, closeScript
	byTime := strings.NewReplacer("redis.call('RENAME', from .. part, to .. part)",
		"redis.call('COPY', from .. part, to .. part)").Replace(prelude)
	if byTime == prelude {
		panic("lua/prelude.lua renames no list")
	}
	openScript = newScriptOf[openArgs, opened]("open", byTime, "")
	closeScript = newScriptOf[closeArgs, word]("close", prelude, deleteByTime)
	return func() { openScript, closeScript = open, close }
}

// newScriptOf returns a script with another prelude, and with text before its last line.
func newScriptOf[A, R any](name, prelude, more string) *redisdb.Script[A, R] {
	source := strings.TrimRight(redisdb.Source(lua, "lua/"+name+".lua"), "\n")
	last := strings.LastIndexByte(source, '\n') + 1
	return redisdb.NewScript[A, R]("digest/"+name+" with a fault", source[:last]+more+source[last:], prelude)
}

// deleteByTime deletes waiting events in a run's categories that aren't later than its begin.
const deleteByTime = `
local place = string.match(KEYS[1], '^(.*):digest%-run:')
local begun = tonumber(redis.call('HGET', KEYS[1], 'started'))
for _, category in ipairs(cjson.decode(redis.call('HGET', KEYS[1], 'taken'))) do
  local list = place .. ':digest-events:' .. redis.call('HGET', KEYS[1], 'account') .. ':'
    .. string.gsub(category, '\31', '%%1F') .. ':' .. redis.call('HGET', KEYS[1], 'recipient')
  for _, line in ipairs(redis.call('LRANGE', list, 0, -1)) do
    if cjson.decode(line)[5] <= begun then redis.call('LREM', list, 1, line) end
  end
  local groups = redis.call('HGETALL', list .. ':older')
  for i = 1, #groups, 2 do
    local n, _, last = string.match(groups[i + 1], '^(%d+) (%d+) (%d+) ')
    if last and tonumber(last) <= begun then
      redis.call('HDEL', list .. ':older', groups[i])
      redis.call('HINCRBY', list .. ':older', 'n', -n)
    end
  end
end
`
