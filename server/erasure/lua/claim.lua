-- claim gives an erasure that no process works on to the caller.
--
-- KEYS[1] erasures
-- ARGV: lease
--   lease  in milliseconds
-- Answer: OK id ends
-- Answer: NONE
-- Atomic because one process works on an erasure at a time.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local id = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1)[1]
if not id then return NONE end
local ends = string.format('%.0f', now + lease)
redis.call('ZADD', KEYS[1], ends, id)
return OK
