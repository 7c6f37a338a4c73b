-- behind.lua notes that the search index misses changes since a moment. The earliest one counts.
--
-- KEYS[1]  since when changes are missing, Unix ms
-- ARGV[1]  the moment, Unix ms
-- Returns 1, for a script that returns nothing looks like a missing key.
local since = tonumber(redis.call('GET', KEYS[1]))
if not since or tonumber(ARGV[1]) < since then
  redis.call('SET', KEYS[1], ARGV[1])
end
return 1
