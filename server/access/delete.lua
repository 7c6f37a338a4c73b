-- Deletes a token.
-- KEYS[1] token:<id> (hash)   KEYS[2] tokens (sorted set)   KEYS[3] tokens:version   KEYS[4] tokens:rate:<id>
-- KEYS[5] tokens:account:<account> (sorted set), absent for an unbound token
-- ARGV: id
-- Result: 1 if there was one, else 0.
-- Atomic so that every process learns that a deleted token is gone.
local existed = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[4])
redis.call('ZREM', KEYS[2], id)
if KEYS[5] then
  redis.call('ZREM', KEYS[5], id)
end
redis.call('INCR', KEYS[3])
return existed
