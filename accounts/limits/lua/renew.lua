-- Renews the leases of connections. A connection whose lease had expired counts again, even beyond the limit: it is open.
-- KEYS[1] limit:<scope>:connections (sorted set)
-- ARGV: test_now lease names...
--   test_now: empty for the clock of Redis   lease: microseconds   names: of the connections
-- Result: 1.
-- Atomic because the set must not expire between the two steps.
local now = clock(test_now)
for i = names, #ARGV do redis.call('ZADD', KEYS[1], whole(now + lease), ARGV[i]) end
expire(KEYS[1], lease)
return 1
