-- letter holds a shared content of the partition for a letter, or lets it go.
--
-- KEYS[1] any key of the partition
-- ARGV: letter name
--   name   of the content; '': let it go
-- Answer: OK
-- Answer: UNSHARED
--   UNSHARED   the content does not exist
-- Atomic because a content that is counted twice would stay for ever.
local letters = prefix .. 'letters'
local has = redis.call('HGET', letters, letter)
if has == name then return OK end
if name ~= '' then
  if not take_shared(name) then return UNSHARED end
  redis.call('HSET', letters, letter, name)
else
  redis.call('HDEL', letters, letter)
end
if has then leave_shared(has) end
return OK
