-- claim gives a lock to a holder, or makes it longer.
--
-- KEYS[1] the lock: its holder
-- ARGV: holder length
--   length  milliseconds
-- Result 1 held, 0 another has it
-- Atomic because two processes that both find no holder would both be it.

local current = redis.call('GET', KEYS[1])
if current and current ~= holder then return 0 end
redis.call('SET', KEYS[1], holder, 'PX', length)
return 1
