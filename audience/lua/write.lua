-- Writes records of one page, with what they change of the states and the counts of lists.
-- KEYS[1] subscriber-page:<account>:<page>   KEYS[2] subscriber-totals:<account>
-- ARGV: first chunk changes...
--   first: offset in its chunk of the page's first record
--   changes: of each record its slot in the page, the version that it has now (four bytes; empty: there is no record), its new body
--     (empty: it is removed), the number of changed lists; and of each of these the id, the new state, the time since when it is pending
-- Result: a text with, for each record, 1 if it was written, 2 if it was as wanted before, and 0 if it has another version.
-- Atomic because the states and counts of lists must agree with the records. A record that is already as wanted changes no count: the
-- script may have run before.
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
local SPARSE, CHUNK = 4000, 64000

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

-- put sets a state and returns the earlier one.
local function put(key, offset, state)
  if redis.call('GETRANGE', key, 0, 0) == 'd' then
    local i = 1 + math.floor(offset / 4)
    local byte = string.byte(redis.call('GETRANGE', key, i, i))
    local unit = 4 ^ (offset % 4)
    local old = math.floor(byte / unit) % 4
    redis.call('SETRANGE', key, i, string.char(byte + (state - old) * unit))
    return old
  end
  local states = redis.call('GET', key) or 's'
  local p, old = find(states, offset), 0
  local member, rest = string.char(math.floor(offset / 256), offset % 256), p
  if string.sub(states, p, p + 1) == member then old, rest = string.byte(states, p + 2), p + 3 end
  local new = state == 0 and '' or member .. string.char(state)
  states = string.sub(states, 1, p - 1) .. new .. string.sub(states, rest)
  if #states > 1 + 3 * SPARSE then states = dense(states) end
  if states == 's' then redis.call('DEL', key) else redis.call('SET', key, states) end
  return old
end

local names = {[1] = 'pending', [2] = 'subscribed', [3] = 'left'}

-- change sets the state of a subscriber on a list.
local function change(list, slot, state, since)
  local offset = first + slot
  local old = put(ROOT .. 'list-states:' .. list .. ':' .. chunk, offset, state)
  local counts, pending = ROOT .. 'list-counts:' .. list, ROOT .. 'list-pending:' .. list
  if old ~= state then
    if old ~= 0 and redis.call('HINCRBY', counts, names[old], -1) <= 0 then redis.call('HDEL', counts, names[old]) end
    if state ~= 0 then redis.call('HINCRBY', counts, names[state], 1) end
  end
  local member = string.format('%d', chunk * CHUNK + offset)
  if state == 1 then redis.call('ZADD', pending, since, member) elseif old == 1 then redis.call('ZREM', pending, member) end
end

local results, total, changed = {}, 0, false
local i = changes
while i <= #ARGV do
  local slot, version, body, lists = tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3])
  local has = records[slot] or ''
  local wanted = has ~= body and string.sub(has, 1, 4) == version
  if wanted then
    if has == '' then total = total + 1 end
    if body == '' then total = total - 1 end
    records[slot], changed = body, true
    size = math.max(size, slot + 1)
    for n = i + 4, i + 1 + 3 * lists, 3 do change(ARGV[n], slot, tonumber(ARGV[n + 1]), ARGV[n + 2]) end
  end
  results[#results + 1] = wanted and '1' or has == body and '2' or '0'
  i = i + 4 + 3 * lists
end
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
