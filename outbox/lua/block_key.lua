-- block_key takes an idempotency key without a message, so that none is accepted under it.
--
-- KEYS[1] idempotency key
-- ARGV: keep_key
--   keep_key  seconds
-- Answer: TAKEN first
-- Answer: BLOCKED
--   TAKEN  a message was accepted or skipped under it, first is the first answer to it; or it was blocked before, first is ''
-- Atomic because a submit that comes late must find the key taken, or be found.

local print, first = used(KEYS[1])
if print then return TAKEN end
redis.call('SET', KEYS[1], '- blocked ', 'EX', keep_key) -- no fingerprint is '-'
return BLOCKED
