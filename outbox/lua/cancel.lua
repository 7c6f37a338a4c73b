-- cancel cancels a message that is not being sent, or deletes a dead letter.
--
-- KEYS[1] message hash
-- ARGV: id now state fence result record events...
--   state, fence  as the caller read them
--   result        cancelled or failed
--   record        for the log; '': there is no log
-- Answer: OK
-- Answer: GONE
-- Answer: ACTIVE
-- Answer: CHANGED
--   CHANGED  the message is no longer as the caller read it
-- Atomic because a worker may begin at this moment: the first one wins, and the other one reads the new state.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not m[1] then return GONE end
if m[1] == 'active' then return ACTIVE end
if m[1] ~= state or m[2] ~= fence then return CHANGED end
remove(id, where(id), tonumber(now), result, record)
emit_all(events)
return OK
