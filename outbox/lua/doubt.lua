-- doubt records, directly before the final dot, that from now on the outcome may be unknown (RFC 1047).
--
-- KEYS[1] message hash
-- ARGV: now fence
-- Result the end of the lease: the dot may be written until then; 0 if the lease is lost, so it must not be
-- Atomic because the lease must be valid at the moment of the mark.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence', 'lease')
if m[1] ~= 'active' or m[2] ~= fence or tonumber(m[3]) <= tonumber(now) then return 0 end
redis.call('HSET', KEYS[1], 'doubt', fence)
return tonumber(m[3])
