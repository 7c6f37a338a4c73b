-- giveback undoes the start of an attempt that was broken off before it could end, because this process stops. The request may have
-- arrived: the next attempt carries the same webhook-id.
--
-- KEYS[1] delivery hash   ARGV 1 endpoint, 2 delivery, 3 attempt, 4 now
-- Result 1 given back, 0 overtaken by another attempt
-- Atomic because only the latest attempt may be taken back.

local d = redis.call('HMGET', KEYS[1], 'status', 'attempts')
if d[1] ~= 'pending' or d[2] ~= ARGV[3] then return 0 end
redis.call('HINCRBY', KEYS[1], 'attempts', -1)
redis.call('ZADD', hook .. 'due', ARGV[4], member(ARGV[1], ARGV[2]))
return 1
