-- share stores a letter, from which several messages are written, for those about to be accepted.
--
-- KEYS[1] any key of the partition
-- ARGV 1 name, 2 letter
-- Result how many messages of the partition are written from it
-- Atomic because one that messages need must not be given an end. While none does, it stays as long as after the last one is gone.

local name = ARGV[1]
local users = tonumber(redis.call('HGET', prefix .. 'letters', name) or '0')
if users > 0 and redis.call('EXISTS', letter_key(name)) == 1 then return users end
if users > 0 then
  redis.call('SET', letter_key(name), ARGV[2]) -- somebody took it away
else
  redis.call('SET', letter_key(name), ARGV[2], 'EX', letter_stays)
end
return users
