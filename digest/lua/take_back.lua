-- take_back deletes events that wait: one by its id, or those about one entity.
--
-- KEYS[1...] lists of events
-- ARGV: id group entity
--   id      of 20 characters; '': all of the entity
--   group   its group in <list>:older
--   entity  its type and id, as in lines: "post","17",
-- Rows: deleted
local rows = {}
for _, list in ipairs(KEYS) do
  local deleted = 0
  for _, line in ipairs(redis.call('LRANGE', list, 0, -1)) do
    local its = string.sub(line, 5, 24) == id
    if id == '' then its = string.sub(line, 27, 26 + #entity) == entity end
    if its then deleted = deleted + redis.call('LREM', list, 1, line) end
  end
  local older = id == '' and redis.call('HGET', list .. ':older', group)
  if older then
    deleted = deleted + string.match(older, '^%d+')
    redis.call('HINCRBY', list .. ':older', 'n', -string.match(older, '^%d+'))
    redis.call('HDEL', list .. ':older', group)
    for _, member in ipairs(redis.call('SMEMBERS', list .. ':actors')) do
      if string.sub(member, 1, 12) == digits(group) then redis.call('SREM', list .. ':actors', member) end
    end
  end
  rows[#rows + 1] = ROW
end
return rows
