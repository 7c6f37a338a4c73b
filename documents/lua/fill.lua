-- fill.lua begins to make up for what the search index misses. What falls behind from here on is noted anew; in one step, so that
-- nothing falls in between.
--
-- KEYS[1]  since when changes are missing, Unix ms
-- KEYS[2]  since when changes are being made up for; there already when an earlier attempt did not come to its end
-- Returns since when changes are to be made up for; 0: none are missing.
local missing, filling = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
if not missing then
  return tonumber(filling or 0)
end
if not filling or tonumber(missing) < tonumber(filling) then
  filling = missing
end
redis.call('SET', KEYS[2], filling)
redis.call('DEL', KEYS[1])
return tonumber(filling)
