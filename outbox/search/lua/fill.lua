-- fill begins to read what the search index misses. Changes missed from now on are noted again.
--
-- KEYS[1] since when changes are missing
-- KEYS[2] since when changes are being read; it exists if an earlier attempt did not end
-- Result since when changes must be read, or 0 if none are missing
-- Atomic so that a change noted in between is in one of the two.

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
