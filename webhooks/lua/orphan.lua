-- orphan looks at a delivery that is overdue and whose task will not run.
--
-- KEYS[1] delivery hash
-- ARGV: endpoint id check_again
--   check_again  when a delivery that is pending is checked again
-- Result 1 it is pending, 0 nothing is left to do
-- Atomic because a delivery that ends at this moment must not be due again.

if redis.call('HGET', KEYS[1], 'status') ~= 'pending' then
  redis.call('ZREM', hook .. 'due', member(endpoint, id))
  return 0
end
redis.call('ZADD', hook .. 'due', check_again, member(endpoint, id))
return 1
