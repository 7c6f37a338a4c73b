-- bury fails a message that is not being sent: an operator archived its task.
--
-- KEYS[1] message hash
-- ARGV: id now state fence status record events...
--   state, fence  as the caller read them
--   status        '': the content is deleted, and record goes to the log
-- Answer: OK
-- Answer: GONE
-- Answer: ACTIVE
-- Answer: CHANGED
-- Atomic for the same reason as cancel.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not m[1] then return GONE end
if m[1] == 'active' then return ACTIVE end
if m[1] ~= state or m[2] ~= fence then return CHANGED end
local at = where(id)
if status ~= '' then
  redis.call('SET', status_key(id), status)
  redis.call('ZREM', prefix .. 'unqueued', id)
  move(id, at, 'failed', now)
  redis.call('HSET', KEYS[1], 'state', 'failed')
  redis.call('HINCRBY', KEYS[1], 'fence', 1) -- so that this call, repeated after a replay, answers CHANGED
  redis.call('HDEL', KEYS[1], 'held', 'reason', 'reservation', 'urgent') -- only a replay wakes a dead letter
else
  remove(id, at, now, 'failed', record)
end
count(now, at, 'failed')
emit_all(events)
return OK
