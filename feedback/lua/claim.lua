-- claim makes a process the one that reconciles, or renews its claim.
--
-- KEYS[1] the claim: its holder
-- ARGV: holder lifetime
--   lifetime  milliseconds
-- Result 1 held, 0 another process holds it
-- Atomic because two processes that both find no claim would both reconcile.

local current = redis.call('GET', KEYS[1])
if current and current ~= holder then return 0 end
redis.call('SET', KEYS[1], holder, 'PX', lifetime)
return 1
