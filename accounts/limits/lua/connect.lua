-- Counts one more connection of a scope, unless it has as many as it may have.
-- KEYS[1] limit:<scope>:connections (sorted set)
-- ARGV: test_now lease most name
--   test_now: empty for the clock of Redis   lease: microseconds   most: connections the scope may have   name: of this connection
-- Result: 1 if it is counted, 0 if the scope is full.
-- Atomic because two processes must not both get the last one.
local now = clock(test_now)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now))
-- a connection that is counted already: the answer to the first call was lost
if not redis.call('ZSCORE', KEYS[1], name) and redis.call('ZCARD', KEYS[1]) >= tonumber(most) then return 0 end
redis.call('ZADD', KEYS[1], whole(now + lease), name)
expire(KEYS[1], lease)
return 1
