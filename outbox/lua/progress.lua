-- progress records the recipients that one transaction of several delivered, so that a crash in a later one does not mail them again.
--
-- KEYS[1] message hash
-- ARGV: id fence transaction status event
--   transaction  its number, from 1
-- Result 1 recorded, 0 another attempt has begun, or the message is gone
-- Atomic because the mark of doubt goes as the answer comes: the transaction was answered, the next one has not reached its dot.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence', 'progress')
if m[2] ~= fence or (m[1] ~= 'active' and m[1] ~= 'waiting') then return 0 end
local mark = fence .. '/' .. transaction
local by, number = string.match(m[3] or '', '^(%d+)/(%d+)$')
if by == fence and tonumber(number) >= tonumber(transaction) then return 1 end -- this very call has come again, perhaps after the next
redis.call('HSET', KEYS[1], 'progress', mark, 'doubt', '')
redis.call('SET', status_key(id), status)
emit(event)
return 1
