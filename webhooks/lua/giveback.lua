-- giveback undoes the start of an attempt that the stop of this process interrupted. The request may have arrived: the next attempt
-- has the same webhook-id.
--
-- KEYS[1] delivery hash
-- ARGV: endpoint id attempt now
-- Result 1 given back, 0 overtaken by another attempt
-- Atomic because only the latest attempt may be withdrawn.

local d = redis.call('HMGET', KEYS[1], 'status', 'attempts')
if d[1] ~= 'pending' or d[2] ~= attempt then return 0 end
redis.call('HINCRBY', KEYS[1], 'attempts', -1)
redis.call('ZADD', hook .. 'due', now, member(endpoint, id))
return 1
