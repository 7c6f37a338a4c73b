-- rewake gives a message whose task is missing a new one.
--
-- KEYS[1] message hash
-- ARGV: id now epoch
--   epoch  the missing task's
-- Result the new epoch as text, or '' if the message has changed since or is in a backlog
-- Atomic because the message may have been woken since. Two tasks do no harm, but would be repeated for ever.

local m = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'putOff', 'held')
if (m[1] ~= 'waiting' and m[1] ~= 'scheduled' and m[1] ~= 'delayed') or m[2] ~= epoch then return '' end
if m[1] == 'waiting' and m[3] == epoch then return '' end -- it is in a backlog
if m[1] == 'delayed' and m[4] and string.find(m[4], ' ', 1, true) then return '' end -- it waits in a line
return wake(id, now)
