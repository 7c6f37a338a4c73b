-- indexed deletes the kept texts of ended messages. A content that is kept for its own sake stays.
--
-- KEYS[1] texts
-- ARGV: ids...
-- Result how many texts there were
-- Atomic because a content without its entry would stay for ever. A live message has no entry, so its content stays.

local indexed = {unpack(ARGV, ids)}
local gone = {}
for i, text in ipairs(redis.call('HMGET', KEYS[1], unpack(indexed))) do
  if text == 'c' then gone[#gone + 1] = content_key(indexed[i]) end
end
if #gone > 0 then redis.call('DEL', unpack(gone)) end
return redis.call('HDEL', KEYS[1], unpack(indexed))
