-- progress records the recipients that one transaction of several delivered, so that a crash in a later one does not mail them again.
--
-- KEYS[1] message hash
-- ARGV 1 id, 2 fence, 3 number of the transaction, 4 status, then events
-- Result 1 recorded, 0 another attempt has begun, or the message is gone
-- Atomic because the mark of doubt goes as the answer comes: the transaction was answered, the next one has not reached its dot.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence', 'progress')
if m[2] ~= ARGV[2] or (m[1] ~= 'active' and m[1] ~= 'waiting') then return 0 end
local mark = ARGV[2] .. '/' .. ARGV[3]
local fence, number = string.match(m[3] or '', '^(%d+)/(%d+)$')
if fence == ARGV[2] and tonumber(number) >= tonumber(ARGV[3]) then return 1 end -- this very call has come again, perhaps after the next
redis.call('HSET', KEYS[1], 'progress', mark, 'doubt', '')
redis.call('SET', status_key(ARGV[1]), ARGV[4])
emit(5)
return 1
