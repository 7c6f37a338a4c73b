-- share stores a letter, from which several messages are written, for those about to be accepted.
--
-- KEYS[1] any key of the partition
-- ARGV 1 name, 2 letter ('': it lies in the incoming key of its name)
-- Result how many messages of the partition are written from it
-- Atomic because one that messages need must not be given an end. While none does, it stays as long as after the last one is gone.

local name = ARGV[1]
local key, incoming = letter_key(name), prefix .. 'incoming:' .. name
local users = tonumber(redis.call('HGET', prefix .. 'letters', name) or '0')
if users > 0 and redis.call('EXISTS', key) == 1 then
  redis.call('DEL', incoming)
  return users
end
if ARGV[2] ~= '' then
  redis.call('SET', key, ARGV[2])
elseif redis.call('EXISTS', incoming) == 1 then
  redis.call('RENAME', incoming, key)
end
if users > 0 then
  redis.call('PERSIST', key) -- somebody had taken it away
else
  redis.call('EXPIRE', key, letter_stays)
end
return users
