-- Scripts gather their changes of people: write_people writes them with one command for each key.
local state_of, group_of, grouped, added, touched = {}, {}, nil, {}, {}

-- read_fields reads 4 bits of each person.
local function read_fields(key, offsets)
  local get, n = {'BITFIELD', key}, 2
  for _, offset in ipairs(offsets) do
    get[n + 1], get[n + 2], get[n + 3] = 'GET', 'u4', '#' .. offset
    n = n + 3
  end
  return redis.call(unpack(get))
end

-- read_groups reads the groups of people, if they have any.
local function read_groups(log, offsets)
  if grouped == nil then grouped = redis.call('EXISTS', log .. ':groups') == 1 end
  if not grouped or #offsets == 0 then return end
  for i, group in ipairs(read_fields(log .. ':groups', offsets)) do group_of[offsets[i]] = group end
end

-- read_states reads the states of people who were not read before.
local function read_states(log, offsets)
  if #offsets == 0 then return end
  for i, state in ipairs(read_fields(log, offsets)) do state_of[offsets[i]] = state_of[offsets[i]] or state end
end

-- add adds to a counter, and to the counter of a person's group, if the person was read.
local function add(offset, field, n)
  added[field] = (added[field] or 0) + n
  if not grouped then return end
  field = 'g' .. group_of[offset] .. ':' .. field
  added[field] = (added[field] or 0) + n
end

-- change sets the state of a person who was read, if the one before is among allowed, which has a letter a to
-- p for each state. It returns whether it did. People who are taken or at the dot are counted together, as
-- people who were taken and have no other state.
local function change(log, offset, new, allowed)
  local old = state_of[offset]
  if not string.find(allowed, string.char(97 + old), 1, true) then return false end
  state_of[offset], touched[offset] = new, true
  if old > 2 then add(offset, old, -1) elseif old == 0 then add(offset, 'taken', 1) end
  if new > 2 then add(offset, new, 1) elseif new == 0 then add(offset, 'taken', -1) end
  if new ~= 4 and old == 4 then redis.call('SREM', log .. ':owed', offset)
  elseif new == 4 and old < 3 then redis.call('SADD', log .. ':owed', offset) end -- else the outbox has the message
  return true
end

-- note_attempt notes a person's number of attempts (-1 means one more than before) in 8 bits, and the time of
-- the last one in 32 bits of seconds. -2 means that later numbers belong to a replay, and count from 1 again.
local made_by, tries, replayed = {}, {}, nil
local function note_attempt(log, offset, seconds, attempts)
  local made = nil
  if attempts < 0 then
    made = made_by[offset] or redis.call('BITFIELD', log .. ':tried', 'GET', 'u40', '#' .. offset)[1] % 256
  end
  if replayed == nil then replayed = redis.call('EXISTS', log .. ':earlier') == 1 end
  if attempts == -2 then
    replayed = true
    return redis.call('HSET', log .. ':earlier', offset, made)
  end
  attempts = made and made + 1 or attempts + (replayed and redis.call('HGET', log .. ':earlier', offset) or 0)
  made_by[offset] = math.min(attempts, 255)
  tries[offset] = seconds * 256 + made_by[offset]
end

-- write_people writes the gathered changes.
local function write_people(log)
  local set, n = {'BITFIELD', log}, 2
  for offset in pairs(touched) do
    set[n + 1], set[n + 2], set[n + 3], set[n + 4] = 'SET', 'u4', '#' .. offset, state_of[offset]
    n = n + 4
  end
  if n > 2 then redis.call(unpack(set)) end
  local number, text = nil, nil -- most are the same
  set, n = {'BITFIELD', log .. ':tried'}, 2
  for offset, try in pairs(tries) do
    if try ~= number then number, text = try, string.format('%.0f', try) end
    set[n + 1], set[n + 2], set[n + 3], set[n + 4] = 'SET', 'u40', '#' .. offset, text
    n = n + 4
  end
  if n > 2 then redis.call(unpack(set)) end
  for field, sum in pairs(added) do
    if sum ~= 0 then redis.call('HINCRBY', log .. ':counts', field, sum) end
  end
end

-- note_earlier sets a field to a time, unless it has an earlier one.
local function note_earlier(counts, field, time)
  local old = redis.call('HGET', counts, field)
  if not old or tonumber(time) < tonumber(old) then redis.call('HSET', counts, field, time) end
end

-- scan_again makes the scan look at a chunk from an offset on, so that people left out before it are not
-- forgotten.
local function scan_again(log, offset)
  local counts = log .. ':counts'
  local at = tonumber(redis.call('HGET', counts, 'at') or '0')
  if tonumber(offset) < at then redis.call('HSET', counts, 'at', offset) end
  local again = redis.call('HGET', counts, 'again')
  if again then note_earlier(counts, 'later', again) end
  redis.call('HDEL', counts, 'done', 'again')
end

-- put_back ends a batch: people who were only taken wait again, and those at the dot get the state doubt.
local function put_back(log, batch, doubt)
  local people, back, doubts, first = {}, 0, 0, nil
  for offset in string.gmatch(redis.call('GET', log .. ':batch:' .. batch) or '', '%d+') do people[#people + 1] = offset end
  redis.call('ZREM', log .. ':batches', batch)
  redis.call('DEL', log .. ':batch:' .. batch)
  read_states(log, people)
  read_groups(log, people)
  for _, offset in ipairs(people) do
    local state = state_of[offset]
    if state == 1 or (state == 2 and doubt == 0) then
      change(log, offset, 0, 'bc')
      first, back = first or offset, back + 1
    elseif state == 2 then
      change(log, offset, doubt, 'c')
      note_attempt(log, offset, redis.call('TIME')[1], -1)
      doubts = doubts + 1
    end
  end
  if first then scan_again(log, first) end
  return back, doubts
end
