-- connect counts one more connection of a scope, if there may be one.
--
-- KEYS: 1 limit:<scope>:connections
-- ARGV: 1 now or '', 2 how long a lease lasts in microseconds, 3 how many connections there may be, 4 the name of this one
-- Result: 1 when it is counted, 0 when the scope is full
-- Atomic, because two processes must not both get the last place.

local now, lease = clock(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now))
-- a connection that is counted already: the answer to the first call was lost
if not redis.call('ZSCORE', KEYS[1], ARGV[4]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], whole(now + lease), ARGV[4])
expire(KEYS[1], lease)
return 1
