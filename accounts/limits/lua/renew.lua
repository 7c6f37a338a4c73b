-- renew prolongs the leases of connections. One that had run out counts again: the connection is there, whatever the count says.
--
-- KEYS: 1 limit:<scope>:connections
-- ARGV: 1 now or '', 2 how long a lease lasts in microseconds, 3… the names of the connections
-- Result: nothing of interest
-- Atomic, because the set must not expire between the two steps.

local now, lease = clock(ARGV[1]), tonumber(ARGV[2])
for i = 3, #ARGV do redis.call('ZADD', KEYS[1], whole(now + lease), ARGV[i]) end
expire(KEYS[1], lease)
return 1
