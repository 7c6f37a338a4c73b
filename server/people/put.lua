-- Creates, replaces or deletes a person, unless another change came first.
-- KEYS[1] person:<name> (string)   KEYS[2] people (sorted set)   KEYS[3] people:version
-- KEYS[4] people:subject:<hash> (string) of the user of an issuer that the record is bound to; absent: none
-- ARGV: name before after binds
--   before: the record as it was read; empty: there was none   after: the new one; empty to delete it
--   binds: 1 if the record before was not bound to that user
-- Result: 1 if done, 0 if another change was first, or that user is another person.
-- Atomic so that a user of an issuer is one person, a code of a second factor is used up once, and every process notices each change.
if (redis.call('GET', KEYS[1]) or '') ~= before then
  return 0
end
local owner = KEYS[4] and redis.call('GET', KEYS[4])
if binds == '1' and owner and owner ~= name then
  return 0
end
if after == '' then
  if owner == name then
    redis.call('DEL', KEYS[4])
  end
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], name)
else
  redis.call('SET', KEYS[1], after)
  if KEYS[4] and not owner then
    redis.call('SET', KEYS[4], name)
  end
  redis.call('ZADD', KEYS[2], 0, name)
end
redis.call('INCR', KEYS[3])
return 1
