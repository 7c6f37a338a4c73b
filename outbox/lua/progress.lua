-- progress records one transaction's recipients, so that a later crash sends them no second copy.
--
-- KEYS[1] message hash
-- ARGV: id fence transaction status event
--   transaction  its number, from 1
-- Result 1 recorded, 0 another attempt has begun, or the message is gone
-- Atomic because the mark of doubt is removed with the result: the next transaction has not reached its dot.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence', 'progress')
if m[2] ~= fence or (m[1] ~= 'active' and m[1] ~= 'waiting') then return 0 end
local mark = fence .. '/' .. transaction
local by, number = string.match(m[3] or '', '^(%d+)/(%d+)$')
if by == fence and tonumber(number) >= tonumber(transaction) then return 1 end -- this call is a repetition, perhaps after the next one
redis.call('HSET', KEYS[1], 'progress', mark, 'doubt', '')
redis.call('SET', status_key(id), status)
emit(event)
return 1
