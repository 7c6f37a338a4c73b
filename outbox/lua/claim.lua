-- claim takes an idempotency key for a request that brings many messages, each with a key of its own that follows from it.
--
-- KEYS[1] idempotency key
-- ARGV: fingerprint keep_key
--   keep_key  seconds
-- Answer: NEW
-- Answer: HIT
-- Answer: REUSED
--   HIT     this very request has the key
--   REUSED  another request has it
-- Atomic because of two requests with one key only one may have it. What was claimed says nothing about the messages: a request that was cut
-- off is repeated, and goes on.

local first = redis.call('GET', KEYS[1])
if not first then
  redis.call('SET', KEYS[1], fingerprint, 'EX', keep_key)
  return NEW
end
if first ~= fingerprint then return REUSED end
redis.call('SETRANGE', KEYS[1], 0, string.sub(first, 1, 1)) -- changes nothing, but WAIT confirms the last write of its connection
return HIT
