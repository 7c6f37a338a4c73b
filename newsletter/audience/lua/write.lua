-- Writes records of one page, with their changes to the states and the counts of lists, and the events of
-- these changes.
-- KEYS[1] subscriber-page:<account>:<page>   KEYS[2] subscriber-totals:<account>   KEYS[3] events or, in a Cluster, subscriber-events
-- ARGV: first chunk changes...
--   first: offset in its chunk of the page's first record
--   changes: of each record its slot in the page, the version that it has now (four bytes; empty: there is no record), its new body
--     (empty: it is removed), the number of changed lists, the number of events; of each of these lists the id, the new state, the time
--     since when it is pending; and the events
-- Result: a text with, for each record, 1 if it was written, 2 if it was as wanted before, and 0 if it has another version.
-- Atomic because the states and counts of lists must agree with the records, and because a crash must not keep the events back. A record
-- that is already as wanted changes no count and has no events: the script may have run before.
first, chunk = tonumber(first), tonumber(chunk)
local ROOT = string.match(KEYS[1], '^postroom:{%d+}:')

-- The records of the page.
local records, size = {}, 0
local page, at = redis.call('GET', KEYS[1]) or '', 1
while at < #page do
  local high, low = string.byte(page, at, at + 1)
  local length = high * 256 + low
  records[size] = string.sub(page, at + 2, at + 1 + length)
  at, size = at + 2 + length, size + 1
end

-- A list's states of a chunk begin with "s" and are, in order, the offset (two bytes) and the state of each member: sparse. Or they begin with
-- "d" and are two bits for each subscriber of the chunk: dense. Sparse ones of more than SPARSE members become dense.
local SPARSE, CHUNK, PAGE = 4000, 64000, 32

-- find returns the position of the first sparse member at offset or behind it.
local function find(states, offset)
  local low, high = 0, (#states - 1) / 3
  while low < high do
    local middle = math.floor((low + high) / 2)
    local a, b = string.byte(states, 2 + 3 * middle, 3 + 3 * middle)
    if a * 256 + b < offset then low = middle + 1 else high = middle end
  end
  return 2 + 3 * low
end

-- dense returns sparse states as dense ones.
local function dense(states)
  local bytes = {}
  for i = 1, CHUNK / 4 do bytes[i] = 0 end
  for p = 2, #states, 3 do
    local a, b, state = string.byte(states, p, p + 2)
    local offset = a * 256 + b
    local i = math.floor(offset / 4) + 1
    bytes[i] = bytes[i] + state * 4 ^ (offset % 4)
  end
  local parts = {'d'}
  for i = 1, CHUNK / 4, 4000 do parts[#parts + 1] = string.char(unpack(bytes, i, i + 3999)) end
  return table.concat(parts)
end

local names = {[1] = 'pending', [2] = 'subscribed', [3] = 'left'}
local lists = {}

-- list_of returns a list with its states of the page, which save writes back.
local function list_of(number)
  local l = lists[number]
  if l then return l end
  l = {key = ROOT .. 'list-states:' .. number .. ':' .. chunk, number = number, states = {}, counts = {0, 0, 0}}
  lists[number] = l
  if redis.call('GETRANGE', l.key, 0, 0) == 'd' then
    l.dense = true
    local bytes = redis.call('GETRANGE', l.key, 1 + first / 4, PAGE / 4 + first / 4)
    for slot = 0, PAGE - 1 do
      l.states[slot] = math.floor(string.byte(bytes, 1 + math.floor(slot / 4)) / 4 ^ (slot % 4)) % 4
    end
    return l
  end
  local states = redis.call('GET', l.key) or 's'
  local from, to = find(states, first), find(states, first + PAGE)
  l.before, l.after = string.sub(states, 1, from - 1), string.sub(states, to)
  for p = from, to - 1, 3 do
    local high, low, state = string.byte(states, p, p + 2)
    l.states[high * 256 + low - first] = state
  end
  return l
end

-- save writes the states and the counts of a list.
local function save(l)
  local parts = {}
  if l.dense then
    for slot = 0, PAGE - 1, 4 do
      local byte = 0
      for i = 0, 3 do byte = byte + l.states[slot + i] * 4 ^ i end
      parts[#parts + 1] = string.char(byte)
    end
    redis.call('SETRANGE', l.key, 1 + first / 4, table.concat(parts))
  else
    for slot = 0, PAGE - 1 do
      local state, offset = l.states[slot] or 0, first + slot
      if state ~= 0 then parts[#parts + 1] = string.char(math.floor(offset / 256), offset % 256, state) end
    end
    local states = l.before .. table.concat(parts) .. l.after
    if #states > 1 + 3 * SPARSE then states = dense(states) end
    if states == 's' then redis.call('DEL', l.key) else redis.call('SET', l.key, states) end
  end
  for state, by in ipairs(l.counts) do
    local counts = ROOT .. 'list-counts:' .. l.number
    if by ~= 0 and redis.call('HINCRBY', counts, names[state], by) <= 0 then redis.call('HDEL', counts, names[state]) end
  end
end

-- change sets the state of a subscriber on a list.
local function change(number, slot, state, since)
  local l = list_of(number)
  local old = l.states[slot] or 0
  l.states[slot] = state
  if old ~= 0 then l.counts[old] = l.counts[old] - 1 end
  if state ~= 0 then l.counts[state] = l.counts[state] + 1 end
  local pending, member = ROOT .. 'list-pending:' .. number, string.format('%d', chunk * CHUNK + first + slot)
  if state == 1 then redis.call('ZADD', pending, since, member) elseif old == 1 then redis.call('ZREM', pending, member) end
end

local results, total, changed = {}, 0, false
local i = changes
while i <= #ARGV do
  local slot, version, body, lists = tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3])
  local first_event = i + 5 + 3 * lists
  local next_change = first_event + tonumber(ARGV[i + 4])
  local has = records[slot] or ''
  local wanted = has ~= body and string.sub(has, 1, 4) == version
  if wanted then
    if has == '' then total = total + 1 end
    if body == '' then total = total - 1 end
    records[slot], changed = body, true
    size = math.max(size, slot + 1)
    for n = i + 5, first_event - 1, 3 do change(ARGV[n], slot, tonumber(ARGV[n + 1]), ARGV[n + 2]) end
    for n = first_event, next_change - 1 do redis.call('XADD', KEYS[3], '*', 'e', ARGV[n]) end
  end
  results[#results + 1] = wanted and '1' or has == body and '2' or '0'
  i = next_change
end
for _, l in pairs(lists) do save(l) end
if changed then
  local parts = {}
  for slot = 0, size - 1 do
    local body = records[slot] or ''
    parts[#parts + 1] = string.char(math.floor(#body / 256), #body % 256) .. body
  end
  redis.call('SET', KEYS[1], table.concat(parts))
  if total ~= 0 then redis.call('HINCRBY', KEYS[2], 'subscribers', total) end
else
  redis.call('HINCRBY', KEYS[2], 'subscribers', 0) -- a write, so that replicas confirm it
end
return table.concat(results)
