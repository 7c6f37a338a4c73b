-- orphan decides about a delivery that is overdue and whose task is not in the queue.
--
-- KEYS[1] delivery hash
-- ARGV: endpoint id check_again
--   check_again  when a delivery with a new task is checked again
-- Answer: FORGET
-- Answer: ENQUEUE
-- Answer: SKIP
--   FORGET   nothing is left to do
--   ENQUEUE  it was never tried and gets one more task
--   SKIP     its task was removed
-- Atomic because two sweeping processes must not both grant the one more task.

local d = redis.call('HMGET', KEYS[1], 'status', 'attempts')
if d[1] ~= 'pending' then
  redis.call('ZREM', hook .. 'due', member(endpoint, id))
  return FORGET
end
if d[2] == '0' and redis.call('HSETNX', KEYS[1], 'requeued', 1) == 1 then
  redis.call('ZADD', hook .. 'due', check_again, member(endpoint, id))
  return ENQUEUE
end
return SKIP
