-- reseal replaces a sealed value by the same one under another secret. Its time to live stays.
--
-- KEYS[1] content, shared content, texts, or dialogues
-- ARGV: id former value field letter
--   id      the message's, or the name of the shared content
--   former  head of the box that is replaced; no two boxes have the same
--   value   the new box; '' if it is in the incoming key
--   field   the hash field that the box is in, after letter; '' if it isn't a hash
-- Result 1 if it was replaced; 0 if it is gone, or is another one
-- Atomic because messages end, and others seal again, at any time.

local key, incoming, found = KEYS[1], prefix .. 'incoming:' .. id, ''
if field ~= '' then
  found = string.sub(redis.call('HGET', key, field) or '', 1 + #letter, #letter + #former)
else
  found = redis.call('GETRANGE', key, 0, #former - 1)
end
if found ~= former then
  redis.call('DEL', incoming)
  return 0
end
if field ~= '' then
  redis.call('HSET', key, field, letter .. value)
elseif value ~= '' then
  redis.call('SET', key, value, 'KEEPTTL')
else
  if redis.call('EXISTS', incoming) == 0 then return 0 end
  local left = redis.call('PTTL', key)
  redis.call('RENAME', incoming, key)
  if left > 0 then redis.call('PEXPIRE', key, left) else redis.call('PERSIST', key) end
end
return 1
