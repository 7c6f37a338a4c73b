-- unlock releases the lock of a replay, if the caller still holds it.
--
-- KEYS[1] lock
-- ARGV: token
-- Result 1 released, 0 another holds it
-- Atomic because a lock that ran out may be taken by another between looking and deleting.

if redis.call('GET', KEYS[1]) ~= token then return 0 end
return redis.call('DEL', KEYS[1])
