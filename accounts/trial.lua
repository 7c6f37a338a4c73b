-- Returns whether one message of an account may be tried. If the account is held, it claims the check that is due.
-- KEYS[1] account:<id>:state (hash)   KEYS[2] accounts:version
-- ARGV: now waits...
--   now: ms since 1970   waits: between checks, ms; the last one repeats
-- Result: 1 if it may, 0 if the next check is not due yet.
-- Atomic so that only one process tries one message.
local had = redis.call('HMGET', KEYS[1], 'state', 'next', 'step')
if had[1] ~= 'held' then
  return 1
end
if tonumber(now) < tonumber(had[2] or '0') then
  return 0
end
local step = tonumber(had[3] or '0')
local wait = ARGV[math.min(waits + step, #ARGV)]
redis.call('HSET', KEYS[1], 'step', math.min(step + 1, #ARGV - waits + 1), 'next', now + wait, 'checking', now)
redis.call('INCR', KEYS[2])
return 1
