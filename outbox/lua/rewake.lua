-- rewake gives a message whose task has disappeared a new one.
--
-- KEYS[1] message hash
-- ARGV 1 id, 2 now, 3 the epoch whose task is missing
-- Result the new epoch as text, or '' when the message has moved on since
-- Atomic because the message may have been woken meanwhile; two tasks would be harmless, but wasteful without end.

local m = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if (m[1] ~= 'waiting' and m[1] ~= 'delayed') or m[2] ~= ARGV[3] then return '' end
return wake(ARGV[1], tonumber(ARGV[2]))
