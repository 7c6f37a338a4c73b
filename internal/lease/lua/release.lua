-- release gives up a lock.
--
-- KEYS[1] the lock: its holder
-- ARGV: holder
-- Result 1 released, 0 another has it
-- Atomic because a lock that ran out may be taken by another between looking and deleting.

if redis.call('GET', KEYS[1]) ~= holder then return 0 end
return redis.call('DEL', KEYS[1])
