-- cancel takes back a message that is not being sent, or forgets a dead letter.
--
-- KEYS[1] message hash
-- ARGV: id now state fence result record events...
--   state, fence  as the caller read them
--   result        cancelled or failed
--   record        what stays in the log; '': nothing
-- Answer: OK
-- Answer: GONE
-- Answer: ACTIVE
-- Answer: CHANGED
--   CHANGED  the message is no longer as the caller read it
-- Atomic because a worker may begin at this very moment; whoever comes first wins, and the other one reads the truth.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not m[1] then return GONE end
if m[1] == 'active' then return ACTIVE end
if m[1] ~= state or m[2] ~= fence then return CHANGED end
remove(id, where(id), tonumber(now), result, record)
emit_all(events)
return OK
