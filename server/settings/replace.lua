-- Replaces the stored form of one setting, if it is still the one that was read.
-- KEYS[1] settings (hash)
-- ARGV: name before after
-- Result: 1 if replaced, 0 if it has changed.
-- Atomic because a change between reading and writing must not be lost.
if redis.call('HGET', KEYS[1], name) ~= before then
  return 0
end
redis.call('HSET', KEYS[1], name, after)
return 1
