-- put creates, changes or deletes an endpoint, if it still is what the caller saw.
--
-- KEYS[1] hash of endpoints
-- ARGV 1 endpoint, 2 its JSON as the caller saw it (empty: absent), 3 its new JSON (empty: delete), 4 1 to forget that it was failing
--      or switched off
-- Result 1 done, 0 it changed meanwhile
-- Atomic because two edits at once must not lose one, and every process learns of the change by the version.

if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) else redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end
if ARGV[4] == '1' then
  redis.call('HDEL', hook .. 'off', ARGV[1])
  redis.call('HDEL', hook .. 'failing', ARGV[1])
end
redis.call('INCR', hook .. 'version')
return 1
