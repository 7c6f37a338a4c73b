-- save stores how far an erasure is, and renews the lease or ends it.
--
-- KEYS[1] erasures   KEYS[2] erasure:<id>   KEYS[3] erasure-of:<hash>
-- ARGV: id held record lease keep
--   held    the end of the lease that the caller has
--   record  '' if only the lease is renewed
--   lease   in milliseconds from now
--   keep    seconds for which the receipt stays; '0' if it is under way
-- Answer: OK ends
-- Answer: LOST
-- Atomic because a process whose lease has ended must not write over what another one found.
if tonumber(redis.call('ZSCORE', KEYS[1], id) or '-1') ~= tonumber(held) then return LOST end
local t = redis.call('TIME')
local ends = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000) + lease)
if keep == '0' then
  if record ~= '' then redis.call('SET', KEYS[2], record) end
  redis.call('ZADD', KEYS[1], ends, id)
else
  redis.call('SET', KEYS[2], record, 'EX', keep)
  redis.call('ZREM', KEYS[1], id)
  redis.call('DEL', KEYS[3])
end
return OK
