-- unlock ends a replay's lock, if it still is the caller's.
--
-- KEYS[1] lock   ARGV 1 the caller's token
-- Result 1 ended, 0 it was another's
-- Atomic because a lock that ran out may be taken by another between looking and deleting.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
