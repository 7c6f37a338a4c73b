-- end notes the result of a run's mail.
--
-- KEYS[1] run, KEYS[2] runs of the account
-- ARGV: run now queue_id state reason seconds
--   queue_id  the mail's
--   state     sent, failed, skipped
-- Answer: OTHER
-- Answer: AGAIN
-- Answer: ENDED
--   AGAIN  that is known already. An answer that was lost, or another process, may have been first
--   OTHER  there is no such run, its mail is another, or it has ended. Only a dead letter that is replayed makes a failed
--          run sent.
local has, old = redis.call('HGET', KEYS[1], 'queueId'), redis.call('HGET', KEYS[1], 'state')
if has == queue_id and old == state then return AGAIN end
if has ~= queue_id or (old ~= 'submitted' and (old ~= 'failed' or state ~= 'sent')) then return OTHER end
redis.call('HSET', KEYS[1], 'state', state, 'reason', reason, 'ended', now)
index(KEYS[2], old, state, run, now)
if state ~= 'failed' then
  local taken = string.gsub(KEYS[1], ':digest%-run:', ':digest-taken:', 1)
  for i = 0, tonumber(redis.call('HGET', KEYS[1], 'lists') or '0') - 1 do drop(taken .. ':' .. i) end
end
redis.call('EXPIRE', KEYS[1], seconds)
return ENDED
