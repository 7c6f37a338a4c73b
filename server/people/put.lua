-- Creates, replaces or deletes a person, unless another change came first.
-- KEYS[1] person:<name> (string)   KEYS[2] people (sorted set)   KEYS[3] people:version
-- ARGV: name before after
--   before: the record as it was read; empty: there was none   after: the new one; empty: delete it
-- Result: 1 if done, 0 if another change was first.
-- Atomic so that a code of a second factor is used up once, and every process notices each change.
if (redis.call('GET', KEYS[1]) or '') ~= before then
  return 0
end
if after == '' then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], name)
else
  redis.call('SET', KEYS[1], after)
  redis.call('ZADD', KEYS[2], 0, name)
end
redis.call('INCR', KEYS[3])
return 1
