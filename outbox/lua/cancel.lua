-- cancel ends a message that is not being sent: it is cancelled, or its dead letter is deleted, or it fails because
-- an operator archived its task.
--
-- KEYS[1] message hash
-- ARGV: id now state fence result record status counter taken_back keep_key events...
--   state, fence  as the caller read them
--   result        cancelled or failed
--   record        for the log; '' if there is no log
--   status        '': the message is deleted; else it becomes a dead letter with this status
--   counter       to add to; '' for none
--   taken_back    1: its idempotency key is free; else that is kept for keep_key seconds after the message is deleted
-- Answer: OK
-- Answer: GONE
-- Answer: ACTIVE
-- Answer: CHANGED
--   CHANGED  the message is no longer as the caller read it
-- Atomic because a worker may begin at this moment: the first one wins, and the other one reads the new state.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not m[1] then return GONE end
if m[1] == 'active' then return ACTIVE end
if m[1] ~= state or m[2] ~= fence then return CHANGED end
local at = where(id)
if status == '' then
  remove(id, at, tonumber(now), result, record, keep_key, taken_back == '1')
else
  redis.call('SET', status_key(id), status)
  redis.call('ZREM', prefix .. 'unqueued', id)
  move(id, at, 'failed', now)
  redis.call('HSET', KEYS[1], 'state', 'failed')
  redis.call('HINCRBY', KEYS[1], 'fence', 1) -- so that this call, repeated after a replay, answers CHANGED
  redis.call('HDEL', KEYS[1], 'held', 'reason', 'reservation', 'urgent') -- only a replay wakes a dead letter
end
if counter ~= '' then count(now, at, counter) end
emit_all(events)
return OK
