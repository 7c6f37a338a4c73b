-- add adds to a counter, and to that of the group of the person, if people have groups.
local grouped -- whether they have; nil: not looked up
local function add(log, offset, field, n)
  local counts = log .. ':counts'
  redis.call('HINCRBY', counts, field, n)
  if grouped == nil then grouped = redis.call('EXISTS', log .. ':groups') == 1 end
  if grouped then
    local group = redis.call('BITFIELD', log .. ':groups', 'GET', 'u4', '#' .. offset)[1]
    redis.call('HINCRBY', counts, 'g' .. group .. ':' .. field, n)
  end
end

-- count changes the counters of a state that a person leaves, and of the one that follows. People who are taken or at
-- the dot are counted together, as those that were taken and have no other state.
local function count(log, offset, old, new)
  if old > 2 then add(log, offset, old, -1) elseif old == 0 then add(log, offset, 'taken', 1) end
  if new > 2 then add(log, offset, new, 1) elseif new == 0 then add(log, offset, 'taken', -1) end
end

-- change sets the state of a person if the one before is among allowed, which has a letter a to p for each state. It
-- returns whether it did.
local function change(log, offset, new, allowed)
  local place = '#' .. offset
  local old = redis.call('BITFIELD', log, 'SET', 'u4', place, new)[1]
  if not string.find(allowed, string.char(97 + old), 1, true) then
    if old ~= tonumber(new) then redis.call('BITFIELD', log, 'SET', 'u4', place, old) end
    return false
  end
  count(log, offset, old, tonumber(new))
  if new ~= '4' and old == 4 then redis.call('SREM', log .. ':owed', offset)
  elseif new == '4' and old < 3 then redis.call('SADD', log .. ':owed', offset) end -- else the outbox has the message
  return true
end

-- note_attempt notes the number of attempts for a person (-1: one more than before) in 8 bits, and the time of the last
-- one in 32 bits of seconds. -2: further numbers are of a replay, and count from 1 again.
local function note_attempt(log, offset, ms, attempts)
  local key, place = log .. ':tried', '#' .. offset
  local made = attempts < 0 and redis.call('BITFIELD', key, 'GET', 'u40', place)[1] % 256
  if attempts == -2 then return redis.call('HSET', log .. ':earlier', offset, made) end
  attempts = made and made + 1 or attempts + (redis.call('HGET', log .. ':earlier', offset) or 0)
  redis.call('BITFIELD', key, 'SET', 'u40', place, string.format('%.0f', math.floor(ms / 1000) * 256 + math.min(attempts, 255)))
end

-- note_earlier sets a field to a time, unless it has an earlier one.
local function note_earlier(counts, field, time)
  local old = redis.call('HGET', counts, field)
  if not old or tonumber(time) < tonumber(old) then redis.call('HSET', counts, field, time) end
end

-- walk_again makes the walk look at a chunk from an offset on. Who was left out before it is not forgotten.
local function walk_again(log, offset)
  local counts = log .. ':counts'
  local at = tonumber(redis.call('HGET', counts, 'at') or '0')
  if tonumber(offset) < at then redis.call('HSET', counts, 'at', offset) end
  local again = redis.call('HGET', counts, 'again')
  if again then note_earlier(counts, 'later', again) end
  redis.call('HDEL', counts, 'done', 'again')
end

-- put_back ends a sheet: people who were only taken wait again, and those at the dot get the state doubt.
local function put_back(log, sheet, doubt)
  local people, back, doubts = redis.call('GET', log .. ':sheet:' .. sheet), 0, 0
  redis.call('ZREM', log .. ':sheets', sheet)
  redis.call('DEL', log .. ':sheet:' .. sheet)
  local from, to, first = string.match(people or '', '^%d+'), string.match(people or '', '%d+$'), nil
  if not from then return back, doubts end
  local base = math.floor(from / 2)
  local states = redis.call('GETRANGE', log, base, math.floor(to / 2))
  for offset in string.gmatch(people, '%d+') do
    local state = string.byte(states, math.floor(offset / 2) - base + 1) or 0
    if offset % 2 == 0 then state = math.floor(state / 16) else state = state % 16 end
    if state == 1 or (state == 2 and doubt == '0') then
      change(log, offset, '0', 'bc')
      first, back = first or offset, back + 1
    elseif state == 2 then
      change(log, offset, doubt, 'c')
      note_attempt(log, offset, redis.call('TIME')[1] * 1000, -1)
      doubts = doubts + 1
    end
  end
  if first then walk_again(log, first) end
  return back, doubts
end
