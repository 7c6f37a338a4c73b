-- owed lists messages whose task may not be queued: a process died, or Redis failed, between accept and enqueue.
--
-- KEYS[1] any key of the partition
-- ARGV: before most
--   before  their task was wanted before this time
-- Rows: id lane epoch due
--   the tasks to enqueue
-- Atomic so that epoch and due belong together.

local owed = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'unqueued', '-inf', before, 'LIMIT', 0, most)) do
  local m = redis.call('HMGET', message_key(id), 'state', 'lane', 'epoch', 'due')
  if m[1] == 'waiting' or m[1] == 'scheduled' or m[1] == 'delayed' then
    local lane, epoch, due = m[2], m[3], m[4]
    owed[#owed + 1] = ROW
  else
    redis.call('ZREM', prefix .. 'unqueued', id)
  end
end
return owed
