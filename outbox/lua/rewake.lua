-- rewake gives a message whose task has disappeared a new one.
--
-- KEYS[1] message hash
-- ARGV: id now epoch
--   epoch  that of the missing task
-- Result the new epoch as text, or '' when the message has moved on since
-- Atomic because the message may have been woken meanwhile; two tasks would be harmless, but wasteful without end.

local m = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if (m[1] ~= 'waiting' and m[1] ~= 'delayed') or m[2] ~= epoch then return '' end
return wake(id, now)
