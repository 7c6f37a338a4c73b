-- indexed deletes the kept texts of ended messages.
--
-- KEYS[1] texts
-- ARGV: ids...
-- Result how many texts there were
-- Atomic because a content without its entry would stay for ever. A live message has no entry, so its content stays.

local texts = 0
for i = ids, #ARGV do
  local id = ARGV[i]
  if redis.call('HDEL', KEYS[1], id) == 1 then
    redis.call('DEL', content_key(id))
    texts = texts + 1
  end
end
return texts
