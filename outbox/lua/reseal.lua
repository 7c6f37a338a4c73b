-- reseal replaces a sealed value by the same one under another secret. Its time to live stays.
--
-- KEYS[1] content, shared content, or texts
-- ARGV: id former value text
--   id      of the message, or the name of the shared content
--   former  head of the box that is replaced; no two boxes have the same
--   value   the new box; '': it is in the incoming key
--   text    1: the box is in the field of texts, after a letter
-- Result 1 if it was replaced; 0 if it is gone, or is another one
-- Atomic because messages end, and others seal again, at any time.

local key, incoming, found = KEYS[1], prefix .. 'incoming:' .. id, ''
if text == '1' then
  found = string.sub(redis.call('HGET', key, id) or '', 2, 1 + #former)
else
  found = redis.call('GETRANGE', key, 0, #former - 1)
end
if found ~= former then
  redis.call('DEL', incoming)
  return 0
end
if text == '1' then
  redis.call('HSET', key, id, 't' .. value)
elseif value ~= '' then
  redis.call('SET', key, value, 'KEEPTTL')
else
  if redis.call('EXISTS', incoming) == 0 then return 0 end
  local left = redis.call('PTTL', key)
  redis.call('RENAME', incoming, key)
  if left > 0 then redis.call('PEXPIRE', key, left) else redis.call('PERSIST', key) end
end
return 1
