-- doubt records, just before the final dot, that from here on the attempt's outcome may be unknown (RFC 1047).
--
-- KEYS[1] message hash
-- ARGV: now fence
-- Result when the lease ends: go on until then; 0 the lease is no longer ours: the dot must not be written
-- Atomic because the lease must still hold at the moment the mark is set.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence', 'lease')
if m[1] ~= 'active' or m[2] ~= fence or tonumber(m[3]) <= tonumber(now) then return 0 end
redis.call('HSET', KEYS[1], 'doubt', fence)
return tonumber(m[3])
