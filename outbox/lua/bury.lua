-- bury fails a message that is not being sent: an operator archived its task.
--
-- KEYS[1] message hash
-- ARGV 1 id, 2 now, 3 state and 4 fence the caller read, 5 status, 6 ended, 7 seconds to keep ended, 8 keep the content (1 or 0), then events
-- Result {'OK'}, {'GONE'}, {'ACTIVE'}, {'CHANGED'}
-- Atomic for the same reason as cancel.

local id, now = ARGV[1], tonumber(ARGV[2])
local m = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not m[1] then return {'GONE'} end
if m[1] == 'active' then return {'ACTIVE'} end
if m[1] ~= ARGV[3] or m[2] ~= ARGV[4] then return {'CHANGED'} end
if ARGV[8] == '1' then
  redis.call('SET', status_key(id), ARGV[5])
  redis.call('ZREM', prefix .. 'unqueued', id)
  move(id, where(id), 'failed', now)
  redis.call('HSET', KEYS[1], 'state', 'failed')
else
  remove(id, where(id), now, ARGV[6], ARGV[7])
end
count(now, 'failed', 1)
emit(9)
return {'OK'}
