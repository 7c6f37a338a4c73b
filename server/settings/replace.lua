-- replace changes the stored form of one setting, if it still is what the caller saw.
--
-- KEYS[1] hash of settings
-- ARGV 1 name of the setting, 2 its value as the caller saw it, 3 the new value
-- Result 1 replaced, 0 it changed meanwhile
-- Atomic because an edit that comes between reading and writing must not be lost.

if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
