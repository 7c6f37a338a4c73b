-- claim claims a mail merge's idempotency key. Each of its messages has its own key, made from this one. They
-- keep it from expiring (see the prelude); without one it expires after keep_key.
--
-- KEYS[1] idempotency key
-- ARGV: fingerprint keep_key
--   keep_key  seconds
-- Answer: NEW
-- Answer: HIT
-- Answer: REUSED
--   HIT     this request has the key
--   REUSED  another request has it
-- Atomic because only one of two requests may have a key. A claimed key does not mean that the messages exist: a
-- request that was cut off is repeated and continues.

local merge, found = string.match(KEYS[1], '[^:]+$'), redis.call('GET', KEYS[1])
if not found then
  redis.call('SET', KEYS[1], stored(fingerprint), 'EX', keep_key)
  return NEW
end
if not same(string.match(found, '^[^+]*'), fingerprint) then return REUSED end
redis.call('SETRANGE', KEYS[1], 0, string.sub(found, 1, 1)) -- changes nothing, but WAIT confirms the last write of its connection
if redis.call('HEXISTS', prefix .. 'merges', merge) == 0 then redis.call('EXPIRE', KEYS[1], keep_key) end
return HIT
