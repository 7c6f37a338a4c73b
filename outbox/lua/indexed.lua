-- indexed deletes the kept texts of ended messages. A content that is kept for its own sake stays.
--
-- KEYS[1] texts
-- ARGV: ids...
-- Result how many texts there were
-- Atomic because a content without its entry would stay for ever. A live message has no entry, so its content stays.

local texts = 0
for i = ids, #ARGV do
  local id = ARGV[i]
  local text = redis.call('HGET', KEYS[1], id)
  if text then
    redis.call('HDEL', KEYS[1], id)
    if text == 'c' then redis.call('DEL', content_key(id)) end
    texts = texts + 1
  end
end
return texts
