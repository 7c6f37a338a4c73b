-- again.lua puts facts that have waited long enough back into the inbox, to be looked at again. Taking and putting must be one step, or two
-- processes put the same one back, and one that dies loses it.
--
-- KEYS[1]  facts that wait, by when they are due (ms)
-- KEYS[2]  the stream
-- ARGV[1]  now (ms)
-- ARGV[2]  how many at most
-- Returns how many.

local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, fact in ipairs(due) do
  redis.call('XADD', KEYS[2], '*', 'f', fact)
  redis.call('ZREM', KEYS[1], fact)
end
return #due
