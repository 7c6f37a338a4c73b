-- unhold wakes messages that wait for their account's trouble to end: all of them, some at a time, or one as a trial.
--
-- KEYS[1] any key of the partition
-- ARGV 1 account, 2 now, 3 how many at most
-- Result triples of id, lane, epoch: the tasks to enqueue
-- Atomic per message: an operator may cancel it at this moment.

local key, now, limit = held_key(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local woken = {}
for _, id in ipairs(redis.call('ZRANGE', key, 0, 999)) do
  if #woken >= 3 * limit then break end
  redis.call('ZREM', key, id)
  local m = redis.call('HMGET', message_key(id), 'held', 'state')
  if m[1] == '1' and m[2] == 'delayed' then -- else it is gone, or has moved on
    local at = where(id)
    redis.call('HDEL', message_key(id), 'held', 'reason')
    redis.call('HSET', message_key(id), 'state', 'waiting', 'due', now)
    move(id, at, 'waiting')
    woken[#woken + 1] = id
    woken[#woken + 1] = at.lane
    woken[#woken + 1] = wake(id, now)
  end
end
if redis.call('ZCARD', key) == 0 then redis.call('SREM', prefix .. 'held', ARGV[1]) end
return woken
