-- Asks whether one message of an account may be tried, and claims the check that is due if the account is held.
-- KEYS[1] account:<id>:state (hash)   KEYS[2] accounts:version
-- ARGV[1] now, ms since 1970   ARGV[2…] waits between checks, ms, the last repeats
-- Result: 1 if it may, 0 if the next check is not due yet.
-- Atomic so that of all processes one tries one message.
local had = redis.call('HMGET', KEYS[1], 'state', 'next', 'step')
if had[1] ~= 'held' then
  return 1
end
if tonumber(ARGV[1]) < tonumber(had[2] or '0') then
  return 0
end
local step = math.min(tonumber(had[3] or '0') + 1, #ARGV - 1)
redis.call('HSET', KEYS[1], 'step', step, 'next', tonumber(ARGV[1]) + tonumber(ARGV[1 + step]), 'checking', ARGV[1])
redis.call('INCR', KEYS[2])
return 1
