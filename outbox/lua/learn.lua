-- learn notes what became known about a message after it was handed on, and tells it.
--
-- KEYS[1] message hash
-- ARGV 1 id, 2 now, 3 what tells the fact from others, 4 the fact, 5 lane, 6 account, 7 facts remembered at most, 8 what it counts as ('' for
--      nothing), 9 the event
-- Result {'NEW'}, {'AGAIN'} it is known, {'FULL'} so much is known of this message that no more is taken
-- Atomic because a fact that was noted and not told would be lost: whoever tells it again is answered that it is known.
--
-- What the log has forgotten, or never had, remembers its facts for as long as somebody may repeat them.

local id, now = ARGV[1], tonumber(ARGV[2])
local key = prefix .. 'later:' .. id
if redis.call('HEXISTS', key, ARGV[3]) == 1 then return {'AGAIN'} end
if redis.call('HLEN', key) >= tonumber(ARGV[7]) then return {'FULL'} end
redis.call('HSET', key, ARGV[3], ARGV[4])
if redis.call('EXISTS', KEYS[1]) == 0 and redis.call('STRLEN', prefix .. 'ended:' .. id) == 0 then redis.call('EXPIRE', key, later_stays) end
if ARGV[8] ~= '' then count(now, {lane = ARGV[5], account = ARGV[6]}, ARGV[8]) end
emit(9)
return {'NEW'}
