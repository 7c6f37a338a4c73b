-- claim takes an idempotency key for a request that brings many messages, each with a key of its own that follows from it.
--
-- KEYS[1] idempotency key
-- ARGV 1 fingerprint, 2 seconds to keep the key
-- Result {'NEW'}, {'HIT'} the key is that of this very request, {'REUSED'} that of another one
-- Atomic because of two requests with one key only one may have it. What was claimed says nothing about the messages: a request that was cut
-- off is repeated, and goes on.

local first = redis.call('GET', KEYS[1])
if not first then
  redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
  return {'NEW'}
end
if first ~= ARGV[1] then return {'REUSED'} end
redis.call('SETRANGE', KEYS[1], 0, string.sub(first, 1, 1)) -- changes nothing, but WAIT confirms the last write of its connection
return {'HIT'}
