-- mailing holds a shared content of the partition for a mailing, or lets it go.
--
-- KEYS[1] any key of the partition
-- ARGV: mailing name
--   name   the content's; '' to release it
-- Answer: OK
-- Answer: UNSHARED
--   UNSHARED   the content does not exist
-- Atomic because a content that is counted twice would stay for ever.
local mailings = prefix .. 'mailings'
local has = redis.call('HGET', mailings, mailing)
if has == name then return OK end
if name ~= '' then
  if not take_shared(name) then return UNSHARED end
  redis.call('HSET', mailings, mailing, name)
else
  redis.call('HDEL', mailings, mailing)
end
if has then leave_shared(has) end
return OK
