-- cancel takes back a message that is not being sent, or forgets a dead letter.
--
-- KEYS[1] message hash
-- ARGV 1 id, 2 now, 3 state and 4 fence the caller read, 5 result (cancelled, failed), 6 what stays in the log ('' for nothing), then events
-- Result {'OK'}, {'GONE'}, {'ACTIVE'}, or {'CHANGED'} when the message is no longer as the caller read it
-- Atomic because a worker may begin at this very moment; whoever comes first wins, and the other one reads the truth.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not m[1] then return {'GONE'} end
if m[1] == 'active' then return {'ACTIVE'} end
if m[1] ~= ARGV[3] or m[2] ~= ARGV[4] then return {'CHANGED'} end
remove(ARGV[1], where(ARGV[1]), tonumber(ARGV[2]), ARGV[5], ARGV[6])
emit(7)
return {'OK'}
