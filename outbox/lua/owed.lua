-- owed lists the messages whose task was never seen to be enqueued: a process died, or Redis went away, between accept and enqueue.
--
-- KEYS[1] any key of the partition
-- ARGV 1 owed since before this time, 2 how many at most
-- Result quadruples of id, lane, epoch, due: the tasks to enqueue
-- Atomic so that epoch and due belong together.

local owed = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'unqueued', '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])) do
  local m = redis.call('HMGET', message_key(id), 'state', 'lane', 'epoch', 'due')
  if m[1] == 'waiting' or m[1] == 'delayed' then
    owed[#owed + 1] = id
    owed[#owed + 1] = m[2]
    owed[#owed + 1] = m[3]
    owed[#owed + 1] = m[4]
  else
    redis.call('ZREM', prefix .. 'unqueued', id)
  end
end
return owed
