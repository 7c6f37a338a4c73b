package outbox

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// The invariants of the model: of its records after each step, of everything at the end.

// recordsLua compares the records of a partition with its other keys, and returns the differences. ARGV[1] is
// the prefix of the partition's keys, ARGV[2] how many milliseconds the contents of sent messages are kept.
// The name of an index is index: and words that must be true of each message in it.
const recordsLua = `
local prefix, wrong, entries = ARGV[1], {}, {}
local function say(...) wrong[#wrong + 1] = table.concat({...}, ' ') end
local function keys(kind) return redis.call('KEYS', prefix .. kind .. ':*') end
local function last(key) return string.match(key, '([^:]+)$') end
local function read(id)
  local m = redis.call('HMGET', prefix .. 'message:' .. id, 'state', 'lane', 'account', 'created', 'lease',
    'due', 'held', 'shared', 'key', 'size', 'token', 'epoch', 'putOff')
  return m[1] and {epoch = m[12], off = m[13], size = m[10], token = m[11], state = m[1], lane = m[2], account = m[3], created = m[4],
    lease = m[5], due = m[6], held = m[7], shared = m[8], key = m[9]}
end
for _, key in ipairs(keys('index')) do
  local members = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #members, 2 do
    local id, m = members[i], read(members[i])
    entries[id] = (entries[id] or 0) + 1
    if not m then
      say(id, 'stands in', key, 'and is gone')
    else
      for word in string.gmatch(string.sub(key, #prefix + 7), '[^:]+') do
        if word ~= 'account' and word ~= (m.state == 'active' and 'waiting' or m.state) and word ~= m.lane and word ~= m.account then
          say(id, m.lane, m.state, 'of', m.account, 'stands in', key)
        end
      end
      if members[i + 1] ~= m.created then say(id, 'stands in', key, 'under another time') end
    end
  end
end
local noted = {}
for _, key in ipairs(keys('addressed')) do
  for _, note in ipairs(redis.call('LRANGE', key, 0, -1)) do noted[string.sub(note, -26)] = true end
end
for _, key in ipairs(keys('ended')) do
  if not noted[last(key)] and redis.call('STRLEN', key) > 0 then
    say(last(key), 'ended, and is not found by an address')
  end
end
local contents, used = {}, {}
local function use(field, n) used[field] = (used[field] or 0) + n end
local function leased(id, m) return table.concat({id, m.lane, m.created, m.account}, ' ') end
local clocks = {leases = {'active', 'lease'}, due = {'delayed', 'due', 'scheduled'}, dead = {'failed'}}
for _, key in ipairs(keys('message')) do
  local id = last(key)
  local m = read(id)
  if not noted[id] then say(id, 'is not found by an address') end
  if entries[id] ~= 2 then say(id, 'stands in', entries[id] or 'no', 'indexes, not in 2') end
  if redis.call('EXISTS', prefix .. 'envelope:' .. id, prefix .. 'content:' .. id) ~= 2 then
    say(id, 'has lost its envelope or content')
  end
  if m.key then
    local key = prefix .. 'idempotency:' .. m.key
    if redis.call('TTL', key) ~= -1 then say(id, 'may lose its idempotency key') end
    if not string.find(redis.call('GET', key) or '', '  ' .. id .. ' ', 1, true) then
      say(id, 'has lost its idempotency key')
    end
  end
  if m.state ~= 'failed' then
    use('bytes ' .. m.account, m.size)
    if m.token then
      use('bytes token:' .. m.token, m.size)
      use('messages token:' .. m.token, 1)
    end
  end
  if m.shared then
    contents[m.shared] = (contents[m.shared] or 0) + 1
    if redis.call('TTL', prefix .. 'shared:' .. m.shared) ~= -1 then
      say(id, 'may lose its shared content')
    end
  end
  for name, clock in pairs(clocks) do
    local member = name == 'leases' and leased(id, m) or id
    local score = redis.call('ZSCORE', prefix .. name, member)
    if (m.state == clock[1] or m.state == clock[3]) ~= (score ~= false) then
      say(id, m.state, 'stands in', name, tostring(score))
    end
    if score and clock[2] and score ~= m[clock[2]] then
      say(id, 'stands in', name, 'under', score, 'not', m[clock[2]])
    end
  end
  local backlog = redis.call('ZSCORE', prefix .. 'backlog:' .. m.lane .. ':' .. m.account, id)
  if m.state ~= 'waiting' and backlog then say(id, m.state, 'stands in a backlog') end
  if (m.state == 'waiting' and m.off == m.epoch) ~= (backlog ~= false) then
    say(id, m.state, m.epoch, m.off or '', 'stands in a backlog as', tostring(backlog))
  end
  if m.held and not redis.call('ZSCORE', prefix .. 'held:' .. m.held, id) then
    say(id, 'is held, and nobody knows')
  end
end
for _, field in ipairs(redis.call('HKEYS', prefix .. 'quota')) do
  local n = tonumber(redis.call('HGET', prefix .. 'quota', field))
  if n ~= used[field] then say(field, 'are counted as', n, 'and there are', used[field] or 0) end
  used[field] = nil
end
for field, n in pairs(used) do say(field, 'are not counted, and there are', n) end
for _, key in ipairs(keys('idempotency')) do
  local id = string.match(redis.call('GET', key), '^%S+ %l* (%w+)')
  if redis.call('TTL', key) == -1 and (read(id) or {}).key ~= last(key) then say(key, 'stays for nobody') end
end
for name in pairs(clocks) do
  for _, member in ipairs(redis.call('ZRANGE', prefix .. name, 0, -1)) do
    local id = string.match(member, '^%w+')
    if not read(id) then say(id, 'stands in', name, 'and is gone') end
  end
end
for _, kind in ipairs({'envelope', 'content', 'status'}) do
  for _, key in ipairs(keys(kind)) do
    local id = last(key)
    local was_sent = redis.call('ZSCORE', prefix .. 'log:transactional:sent', id) or
      redis.call('ZSCORE', prefix .. 'log:bulk:sent', id)
    local left = redis.call('PTTL', key)
    if not read(id) and not (kind == 'content' and was_sent and left > 0 and left <= tonumber(ARGV[2])) then
      say(key, 'is left of a message that is gone, for', left)
    end
    if read(id) and left ~= -1 then say(key, 'of a live message expires') end
  end
end
for _, name in ipairs(redis.call('HKEYS', prefix .. 'sharedUsers')) do
  local n = tonumber(redis.call('HGET', prefix .. 'sharedUsers', name))
  if n ~= (contents[name] or 0) then
    say('shared content', name, 'counts', n, 'messages, there are', contents[name] or 0)
  end
  contents[name] = nil
end
for name in pairs(contents) do say('shared content', name, 'counts no messages') end
for _, key in ipairs(keys('shared')) do
  if redis.call('HEXISTS', prefix .. 'sharedUsers', last(key)) == 0 and redis.call('TTL', key) == -1 then
    say(key, 'stays for nobody')
  end
end
for _, lane in ipairs({'transactional', 'bulk'}) do
  for _, id in ipairs(redis.call('ZRANGE', prefix .. 'log:' .. lane .. ':sent', 0, -1)) do
    if ARGV[2] ~= '0' and redis.call('EXISTS', prefix .. 'content:' .. id) == 0 then
      say(id, 'was sent, and its content is not kept')
    end
  end
end
for _, key in ipairs(keys('sharedKept')) do
  local shared = redis.call('PTTL', prefix .. 'shared:' .. last(key)) -- first: time passes in a script
  local left = redis.call('PTTL', key)
  if left < 0 or shared ~= -1 and shared < left then
    say(key, 'is kept for', left, 'and the shared content for', shared)
  end
end
return wrong`

// checkRecords finds records that do not agree with their indexes.
func (m *model) checkRecords() {
	m.rt.Helper()
	if err := (&Counts{m.store}).countNew(m.ctx); err != nil {
		m.rt.Fatal(err)
	}
	for p := range m.store.DB.Partitions() {
		wrong, err := m.store.DB.Client().Eval(m.ctx, recordsLua, nil, redisdb.Key(p, ""),
			m.options.KeepContent.Milliseconds()).StringSlice()
		if err != nil {
			m.rt.Fatal(err)
		}
		for _, w := range wrong {
			m.rt.Error(w)
		}
	}
}

// live counts the messages that are neither done nor dead.
func (m *model) live() int {
	n := 0
	for p := range m.store.DB.Partitions() {
		for _, lane := range []string{"transactional", "bulk"} {
			for _, st := range []string{stateWaiting, stateScheduled, stateDelayed} {
				n += int(m.store.DB.Client().ZCard(m.ctx, m.store.keys.index(p, lane, st)).Val())
			}
		}
	}
	return n
}

// check compares the result of a history with the promises.
func (m *model) check() {
	m.checkRecords()
	events := allEvents(m)
	m.checkAccepted(events)
	told := map[string]*account{}
	for _, e := range queuedOnly(m, events) {
		m.read(e, told)
	}
	for whose, before := range m.taken {
		_, to, _ := strings.Cut(whose, " ")
		if m.relay.copies[whose] > before && !m.relay.troubled[to] {
			m.rt.Errorf("%s got a copy after its message was cancelled", to)
		}
	}
	troubled := map[*handed]bool{}
	for to, a := range told {
		troubled[a.handed] = troubled[a.handed] || m.relay.troubled[to]
	}
	for to, a := range told {
		a.check(m, to)
		if a.doubted && !troubled[a.handed] { // a doubt is the message's, not the recipient's
			m.rt.Errorf("%s is in doubt, and no attempt ever died", to)
		}
	}
	m.checkCounters(events)
	checkKept(m)
	for p := range m.store.DB.Partitions() {
		if n := m.store.DB.Client().SCard(m.ctx, m.store.keys.held(p)).Val(); n > 0 {
			m.rt.Errorf("partition %d still has held messages", p)
		}
	}
}

// queuedOnly leaves out the events of messages that were never queued, because all recipients were
// suppressed.
func queuedOnly(m *model, events []event.Event) []event.Event {
	queued := map[string]bool{}
	for _, e := range events {
		if e.Type == event.MessageQueued {
			queued[aboutOf(m, e).QueueID] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool {
		return !queued[aboutOf(m, e).QueueID] && e.Type == event.MessageSuppressed
	})
}

// account is the state of one recipient by the events, in their order.
type account struct {
	handed  *handed // the submit under whose key its messages are
	message string  // the latest of them
	open    bool    // queued, and without a final event since
	sent    int     // number of messageSent
	replays int     // and submits under the key of a message that was withdrawn
	doubted bool    // an event says that it may have received the message
	wrong   []string
}

// about has the common fields of events about messages, and some of others.
type about struct {
	event.Message
	InDoubt   bool   `json:"inDoubt"`
	ErrorCode string `json:"errorCode"`
}

func (m *model) read(e event.Event, told map[string]*account) {
	d := aboutOf(m, e)
	for _, to := range d.Envelope.To {
		a := told[to]
		if a == nil {
			a = &account{handed: handedAs(m, d.QueueID), message: d.QueueID}
			told[to] = a
		}
		a.doubted = a.doubted || d.InDoubt || d.ErrorCode == "EINDOUBT"
		switch e.Type {
		case event.MessageQueued, event.MessageReplayed:
			if a.open {
				a.wrong = append(a.wrong, "was opened twice")
			}
			a.open = true
			if e.Type == event.MessageReplayed || a.message != d.QueueID {
				a.replays++
			}
			a.message = d.QueueID
		case event.MessageSent, event.MessageFailed, event.MessageCancelled, event.MessageSuppressed:
			if !a.open {
				a.wrong = append(a.wrong, "had a last word after its last word: "+string(e.Type))
			}
			a.open = false
			if e.Type == event.MessageSent {
				a.sent++
			}
		}
	}
}

// check compares the events of a recipient with the copies it got.
func (a *account) check(m *model, to string) {
	for _, w := range a.wrong {
		m.rt.Errorf("%s %s", to, w)
	}
	if a.open {
		m.rt.Errorf("%s never had a last word", to)
	}
	copies := m.relay.copies[to]
	if copies != a.sent && !a.doubted {
		m.rt.Errorf("%s got %d copies, %d were told of, and nobody spoke of a doubt", to, copies, a.sent)
	}
	if m.options.HoldInDoubt && copies > 1+a.replays {
		m.rt.Errorf("%s got %d copies after %d replays, though doubtful attempts are not repeated", to, copies,
			a.replays)
	}
	if copies < a.sent {
		m.rt.Errorf("%s got %d copies, and %d were told of", to, copies, a.sent)
	}
	if before, barred := m.barred[to]; barred && copies > before {
		m.rt.Errorf("%s got a copy after being suppressed", to)
	}
}

// checkAccepted: each accepted message has one event messageQueued, a key has one message that was not
// withdrawn, and no two events share an id.
func (m *model) checkAccepted(events []event.Event) {
	ids, queued := map[string]event.Event{}, map[string][]string{}
	for _, e := range events {
		if first, ok := ids[e.ID]; ok {
			m.rt.Errorf("two events have the id %s: %s %s, %s %s", e.ID, first.Type, first.Data, e.Type, e.Data)
		}
		ids[e.ID] = e
		if e.Type == event.MessageQueued {
			queued[aboutOf(m, e).MessageID] = append(queued[aboutOf(m, e).MessageID], aboutOf(m, e).QueueID)
		}
	}
	for _, l := range m.sent {
		all := queued[l.req.MessageID]
		standing := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return takenBack(m, id) })
		if len(standing) > 1 || l.id != "" && !slices.Contains(all, l.id) {
			m.rt.Errorf("message %s (%s) was reported as queued as %v; of them %v were not taken back",
				l.req.MessageID, l.id, all, standing)
		}
	}
}

// checkKept: if contents are kept, each sent message's can be read; else none.
func checkKept(m *model) {
	for _, id := range m.ids {
		logged, err := m.Reader.Message(m.ctx, id)
		if err != nil {
			m.rt.Fatal(err)
		}
		if logged.Ended == nil || logged.Status == api.StatusDead { // it has its content until it ends
			continue
		}
		want := m.options.KeepContent > 0 && logged.Status == api.StatusSent
		_, err = m.Reader.Mail(m.ctx, id)
		if want != (err == nil) || want != (logged.ContentUntil != nil) {
			m.rt.Errorf("message %s, %s: kept until %v, reading it says %v", id, logged.Status,
				logged.ContentUntil, err)
		}
	}
}

// checkCounters compares the counters with the events: all that was queued was sent, failed or cancelled,
// once, however often it was replayed.
func (m *model) checkCounters(events []event.Event) {
	happened := map[event.Type]int{}
	for _, e := range events {
		happened[e.Type]++
	}
	count := m.counters()
	if count["queued"] != happened[event.MessageQueued] {
		m.rt.Errorf("%d messages counted as queued, %d reported", count["queued"], happened[event.MessageQueued])
	}
	if n := acceptedByDay(m); n != happened[event.MessageQueued] {
		m.rt.Errorf("%d messages counted by day, %d reported", n, happened[event.MessageQueued])
	}
	if ended := count["sent"] + count["failed"] + count["suppressed"] +
		happened[event.MessageCancelled]; happened[event.MessageQueued] != ended {
		m.rt.Errorf("%d messages ended: counted %v, reported %v", ended, count, happened)
	}
}

// acceptedByDay sums the messages of the account by day.
func acceptedByDay(m *model) (sum int) {
	for p := range m.store.DB.Partitions() {
		for _, key := range m.store.DB.Client().Keys(m.ctx, redisdb.Key(p, "quota")+":*").Val() {
			n, _ := m.store.DB.Client().HGet(m.ctx, key, "default").Int()
			sum += n
		}
	}
	return sum
}

// counters sums the counters of all minutes and lanes.
func (m *model) counters() map[string]int {
	if err := (&Counts{m.store}).countNew(m.ctx); err != nil {
		m.rt.Fatal(err)
	}
	count := map[string]int{}
	for p := range m.store.DB.Partitions() {
		prefix := redisdb.Key(p, "stats") + ":"
		keys, err := m.store.DB.Client().Keys(m.ctx, prefix+"*").Result()
		if err != nil {
			m.rt.Fatal(err)
		}
		for _, key := range keys {
			if strings.Contains(strings.TrimPrefix(key, prefix), ":") {
				continue // one account's
			}
			for field := range m.store.DB.Client().HGetAll(m.ctx, key).Val() {
				n, err := m.store.DB.Client().HGet(m.ctx, key, field).Int()
				if err != nil {
					m.rt.Fatal(err)
				}
				name, _, _ := strings.Cut(field, ":")
				count[name] += n
			}
		}
	}
	return count
}

// findAccepted finds the accepted messages, including those whose submit got no answer.
func (m *model) findAccepted() {
	for _, e := range allEvents(m) {
		d := aboutOf(m, e)
		if e.Type != event.MessageQueued || slices.Contains(m.ids, d.QueueID) {
			continue
		}
		m.ids = append(m.ids, d.QueueID)
		for _, l := range m.sent {
			if l.req.MessageID == d.MessageID {
				l.queued = append(l.queued, d.QueueID)
			}
		}
	}
}

// recipients returns the recipients of a message.
func (m *model) recipients(id string) []string {
	var all []string
	if l := handedAs(m, id); l != nil {
		for _, to := range l.req.To {
			all = append(all, to.Address)
		}
	}
	return all
}

// handedAs is the submit that a message is of.
func handedAs(m *model, id string) *handed {
	for _, l := range m.sent {
		if slices.Contains(l.queued, id) {
			return l
		}
	}
	return nil
}

func aboutOf(m *model, e event.Event) about {
	var d about
	if err := json.Unmarshal(e.Data, &d); err != nil {
		m.rt.Fatal(err)
	}
	return d
}

func allEvents(m *model) []event.Event {
	var all []event.Event
	for p := range m.store.DB.Partitions() {
		entries, err := m.store.DB.Client().XRange(m.ctx, m.store.keys.events(p), "-", "+").Result()
		if err != nil {
			m.rt.Fatal(err)
		}
		for _, entry := range entries {
			e, err := event.Parse([]byte(entry.Values["e"].(string)))
			if err != nil {
				m.rt.Fatal(err)
			}
			all = append(all, e)
		}
	}
	return all
}
