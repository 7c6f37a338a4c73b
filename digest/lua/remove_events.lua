-- remove_events deletes waiting events: one by its id, or all about one entity.
--
-- KEYS[1..4] the recipient's keys known by day, KEYS[5] the answer to this call, KEYS[6...] lists of events
-- ARGV: id group entity
--   id      20 characters; '' for all of the entity's events
--   group   its group in <list>:older
--   entity  its type and id, as in lines: "post","17",
-- Rows: deleted older
--   older  events of the list that a key can't reach
-- The client of Redis repeats a call whose answer it lost, so the answer is kept for a minute.
local answered = redis.call('GET', KEYS[5])
if answered then return cjson.decode(answered) end

-- The state of a key whose event is deleted becomes that, so that its repetition is answered truly.
local function forsake(key)
  for day = 1, 4 do
    local known = redis.call('HGET', KEYS[day], key)
    if known then redis.call('HSET', KEYS[day], key, string.sub(known, 1, 8) .. 'd' .. string.sub(known, 10)) end
  end
end

local rows = {}
for n = 6, #KEYS do
  local list, deleted = KEYS[n], 0
  for _, line in ipairs(redis.call('LRANGE', list, 0, -1)) do
    local its = string.sub(line, 5, 24) == id
    if id == '' then its = string.sub(line, 27, 26 + #entity) == entity end
    if its then
      deleted = deleted + redis.call('LREM', list, 1, line)
      forsake(string.sub(line, 5, 12))
    end
  end
  local folded = id == '' and redis.call('HGET', list .. ':older', group)
  if folded then
    deleted = deleted + string.match(folded, '^%d+')
    redis.call('HINCRBY', list .. ':older', 'n', -string.match(folded, '^%d+'))
    redis.call('HDEL', list .. ':older', group)
    for _, member in ipairs(redis.call('SMEMBERS', list .. ':actors')) do
      if string.sub(member, 1, 12) == digits(group) then redis.call('SREM', list .. ':actors', member) end
    end
  end
  local older = redis.call('HGET', list .. ':older', 'n') or 0
  rows[#rows + 1] = ROW
end
redis.call('SET', KEYS[5], cjson.encode(rows), 'EX', 60)
return rows
