-- share stores a shared content for messages that will be accepted next.
--
-- KEYS[1] any key of the partition
-- ARGV: name content
--   content  '' if it is in the incoming key of its name
-- Result how many messages of the partition are rendered from it
-- Atomic because a content that messages need must not expire. Without messages it expires as after the last one.

local key, incoming = shared_key(name), prefix .. 'incoming:' .. name
local users = tonumber(redis.call('HGET', prefix .. 'sharedUsers', name) or '0')
if users > 0 and redis.call('EXISTS', key) == 1 then
  redis.call('DEL', incoming)
  return users
end
if content ~= '' then
  redis.call('SET', key, content)
elseif redis.call('EXISTS', incoming) == 1 then
  redis.call('RENAME', incoming, key)
end
if users > 0 then
  redis.call('PERSIST', key) -- it had been deleted
else
  rest_shared(name)
end
return users
