-- indexed forgets the texts that were kept of messages that ended.
--
-- KEYS[1] texts
-- ARGV: ids...
-- Result how many texts there were
-- Atomic because a content without its entry would stay for ever. The content of a live message has no entry, and is left alone.

local texts = 0
for i = ids, #ARGV do
  local id = ARGV[i]
  if redis.call('HDEL', KEYS[1], id) == 1 then
    redis.call('DEL', content_key(id))
    texts = texts + 1
  end
end
return texts
