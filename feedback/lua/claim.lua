-- claim.lua makes a process the one that reconciles, or keeps it so. Looking and writing must be one step, or two processes do.
--
-- KEYS[1]  the claim: who
-- ARGV[1]  who wants it
-- ARGV[2]  how long it holds (ms)
-- Returns 1: held; 0: somebody else does.

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
