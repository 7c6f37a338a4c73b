-- purge takes messages out of the log that ended too long ago, or are too many.
--
-- KEYS[1] any key of the partition
-- ARGV: before keep most
--   before  those that ended before this time go
--   keep    how many stay at most
--   most    how many go at most in one call
-- Result how many went
-- Atomic because an entry of an index without its record would be counted and not shown. The list is in the order of the messages' ends.

local list = prefix .. 'ended'
local gone, left = 0, redis.call('LLEN', list)
while gone < tonumber(most) and left > 0 do
  local ended, id, lane, result, account = string.match(redis.call('LINDEX', list, 0), '^(%d+) (%w+) (%w+) (%w+) (.*)$')
  if tonumber(ended) >= tonumber(before) and left <= tonumber(keep) then break end
  redis.call('LPOP', list)
  redis.call('DEL', prefix .. 'ended:' .. id, prefix .. 'facts:' .. id)
  if redis.call('HDEL', prefix .. 'texts', id) == 1 then redis.call('DEL', content_key(id)) end
  strike(log_key(lane, result), {account = account}, id)
  gone, left = gone + 1, left - 1
end
return gone
