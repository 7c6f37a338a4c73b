-- orphan decides about a delivery whose time has come and gone and whose task is not in the queue.
--
-- KEYS[1] delivery hash   ARGV 1 endpoint, 2 delivery, 3 when to look again
-- Result 'forget' nothing to do any more, 'enqueue' it was never tried and is given one more task, 'skip' its task was taken away
-- Atomic because two sweeping processes must not both grant the one more task.

local d = redis.call('HMGET', KEYS[1], 'status', 'attempts')
if d[1] ~= 'pending' then
  redis.call('ZREM', hook .. 'due', member(ARGV[1], ARGV[2]))
  return 'forget'
end
if d[2] == '0' and redis.call('HSETNX', KEYS[1], 'requeued', 1) == 1 then
  redis.call('ZADD', hook .. 'due', ARGV[3], member(ARGV[1], ARGV[2]))
  return 'enqueue'
end
return 'skip'
