-- erase replaces the recipients of a message that stays for others of its recipients.
--
-- KEYS[1] message hash
-- ARGV: id state fence envelope status events...
--   state, fence  as the caller read them
-- Answer: OK
-- Answer: GONE
-- Answer: ACTIVE
-- Answer: CHANGED
-- Atomic because a worker may begin at this moment: the first one wins, and the other one reads the new state.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not m[1] then return GONE end
if m[1] == 'active' then return ACTIVE end
if m[1] ~= state or m[2] ~= fence then return CHANGED end
redis.call('SET', envelope_key(id), envelope)
redis.call('SET', status_key(id), status)
redis.call('DEL', dialogues_key(id)) -- they name the recipients
redis.call('HDEL', KEYS[1], 'v') -- it was about the former recipients
redis.call('HINCRBY', KEYS[1], 'fence', 1) -- so that a worker whose lease ended can't write the former status again
emit_all(events)
return OK
