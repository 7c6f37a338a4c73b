-- behind notes that the search index misses changes since a time. The earliest one counts.
--
-- KEYS[1] since when changes are missing
-- ARGV: since
-- Result 1

local noted = tonumber(redis.call('GET', KEYS[1]))
if not noted or tonumber(since) < noted then
  redis.call('SET', KEYS[1], since)
end
return 1
