-- begin gives a run that was claimed again to its worker.
--
-- KEYS[1] run, KEYS[2] open, KEYS[3] fences, KEYS[4] runs of the account
-- ARGV: run fence now most
--   most  attempts that it may have
-- Answer: STALE
-- Answer: BEGUN
-- Answer: SPENT
-- Answer: ENDED
--   BEGUN  the state of one that is skipped or failed stays: its event is to be emitted, or its events to be returned
--   SPENT  it had all its attempts, and the last one was cut off: its worker did not say what came of it
--   ENDED  there is nothing to do; it is not open any more
-- An attempt is counted as it begins, since one that is cut off can't count itself.
local held = 'run ' .. run
if redis.call('HGET', KEYS[3], held) ~= fence then return STALE end
local state = redis.call('HGET', KEYS[1], 'state')
local decided = state == 'skipped' or state == 'failed'
if state ~= 'pending' and state ~= 'processing' and not decided then
  redis.call('ZREM', KEYS[2], held)
  redis.call('HDEL', KEYS[3], held)
  return ENDED
end
if not decided and tonumber(redis.call('HGET', KEYS[1], 'attempts') or '0') >= tonumber(most) then return SPENT end
if not decided then
  redis.call('HSET', KEYS[1], 'state', 'processing', 'started', now)
  redis.call('HINCRBY', KEYS[1], 'attempts', 1)
  index(KEYS[4], state, 'processing', run, now)
end
return BEGUN
