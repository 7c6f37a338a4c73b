-- bury fails a message that is not being sent: an operator archived its task.
--
-- KEYS[1] message hash
-- ARGV 1 id, 2 now, 3 state and 4 fence the caller read, 5 status ('' when the content goes at once), 6 what stays in the log then, then events
-- Result {'OK'}, {'GONE'}, {'ACTIVE'}, {'CHANGED'}
-- Atomic for the same reason as cancel.

local id, now = ARGV[1], tonumber(ARGV[2])
local m = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not m[1] then return {'GONE'} end
if m[1] == 'active' then return {'ACTIVE'} end
if m[1] ~= ARGV[3] or m[2] ~= ARGV[4] then return {'CHANGED'} end
local at = where(id)
if ARGV[5] ~= '' then
  redis.call('SET', status_key(id), ARGV[5])
  redis.call('ZREM', prefix .. 'unqueued', id)
  move(id, at, 'failed', now)
  redis.call('HSET', KEYS[1], 'state', 'failed')
  redis.call('HINCRBY', KEYS[1], 'fence', 1) -- so that this very call, should it come again after a replay, finds the message changed
  redis.call('HDEL', KEYS[1], 'held', 'reason', 'slot', 'urgent') -- nothing wakes a dead letter but a replay
else
  remove(id, at, now, 'failed', ARGV[6])
end
count(now, at, 'failed')
emit(7)
return {'OK'}
