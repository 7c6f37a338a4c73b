-- release gives the turn to ask for a token back.
--
-- KEYS[1] lock
-- ARGV 1 the caller's fence
-- Result 1 given back, 0 it was not ours any more
-- Atomic because a lock that ran out may be taken by another between looking and deleting.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
