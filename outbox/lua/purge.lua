-- purge deletes log entries that are too old or too many, with their stored contents.
--
-- KEYS[1] any key of the partition
-- ARGV: before keep most
--   before  messages that ended before this time are deleted
--   keep    how many stay at most
--   most    how many are deleted at most
-- Result how many were deleted
-- Atomic because an index entry without its record would be counted but not shown. The list is in the order of the ends.

local list = prefix .. 'ended'
local gone, left = 0, redis.call('LLEN', list)
while gone < tonumber(most) and left > 0 do
  local ended, id, lane, result, account = string.match(redis.call('LINDEX', list, 0), '^(%d+) (%w+) (%w+) (%w+) (.*)$')
  if tonumber(ended) >= tonumber(before) and left <= tonumber(keep) then break end
  redis.call('LPOP', list)
  forget_outcome(id, lane, account)
  redis.call('DEL', prefix .. 'ended:' .. id, prefix .. 'facts:' .. id, dialogues_key(id), content_key(id))
  redis.call('HDEL', prefix .. 'texts', id)
  strike(log_key(lane, result), {account = account}, id)
  gone, left = gone + 1, left - 1
end
return gone
