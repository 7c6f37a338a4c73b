-- close ends the work on a run.
--
-- KEYS[1] run, KEYS[2] open, KEYS[3] fences, KEYS[4] runs of the account, KEYS[5] runs of the recipient
-- ARGV: run fence now state reason queue_id groups seconds again unspent open
--   state    submitted, failed or skipped; '' if it is tried again at the time again
--   groups   its content, for the record; '' to leave it
--   seconds  that it is kept
--   unspent  1: this was no attempt
--   open     1: it stays open, as something is left to do about its state
-- Answer: STALE
-- Answer: CLOSED
-- Atomic because a run that is submitted and open would be submitted again.
local held = 'run ' .. run
if redis.call('HGET', KEYS[3], held) ~= fence then return STALE end
local old = redis.call('HGET', KEYS[1], 'state')
if state == '' then
  redis.call('HSET', KEYS[1], 'state', 'pending', 'reason', reason)
  if unspent == '1' then redis.call('HINCRBY', KEYS[1], 'attempts', -1) end
  index(KEYS[4], old, 'pending', run, now)
  redis.call('ZADD', KEYS[2], again, held)
  return CLOSED
end
if open ~= '1' then
  redis.call('ZREM', KEYS[2], held)
  redis.call('HDEL', KEYS[3], held)
end
redis.call('HSET', KEYS[1], 'state', state, 'reason', reason, 'queueId', queue_id)
if groups ~= '' then redis.call('HSET', KEYS[1], 'groups', groups) end
if state ~= 'submitted' then redis.call('HSET', KEYS[1], 'ended', now) end
index(KEYS[4], old, state, run, now)
local taken = string.gsub(KEYS[1], ':digest%-run:', ':digest-taken:', 1)
for i = 0, tonumber(redis.call('HGET', KEYS[1], 'lists') or '0') - 1 do
  if state == 'skipped' then drop(taken .. ':' .. i) else remember(taken .. ':' .. i, seconds) end
end
redis.call('EXPIRE', KEYS[1], seconds)
redis.call('EXPIRE', KEYS[5], seconds)
return CLOSED
