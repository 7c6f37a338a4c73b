-- learn notes a fact about a message that a relay has accepted, and emits its event.
--
-- KEYS[1] message hash
-- ARGV: id now field fact lane account facts_most counter event
--   field    distinguishes the fact from others
--   counter  what the fact adds to; '': nothing
-- Answer: NEW
-- Answer: AGAIN
-- Answer: FULL
--   AGAIN  the fact is known
--   FULL   facts_most facts are known of this message
-- Atomic because a fact that was noted without its event would be lost: it is known when it is reported again.
--
-- What the log has forgotten, or never had, remembers its facts for as long as somebody may repeat them.

local key = prefix .. 'facts:' .. id
if redis.call('HEXISTS', key, field) == 1 then return AGAIN end
if redis.call('HLEN', key) >= tonumber(facts_most) then return FULL end
redis.call('HSET', key, field, fact)
if redis.call('EXISTS', KEYS[1]) == 0 and redis.call('STRLEN', prefix .. 'ended:' .. id) == 0 then redis.call('EXPIRE', key, facts_stay) end
if counter ~= '' then count(now, {lane = lane, account = account}, counter) end
emit(event)
return NEW
