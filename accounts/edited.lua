-- Makes the next check due immediately if the account of the configuration is another one than the one whose mail is held.
-- KEYS[1] account:<id>:state (hash)
-- ARGV: configured
--   configured: fingerprint of the account in the configuration
-- Result: 1 if it was another one, else 0.
-- Atomic so that a check that another process has just claimed is not claimed again.
local had = redis.call('HMGET', KEYS[1], 'state', 'of')
if had[1] ~= 'held' or (had[2] or '') == configured then
  return 0
end
redis.call('HSET', KEYS[1], 'of', configured, 'next', 0, 'step', 0)
redis.call('HDEL', KEYS[1], 'kinds', 'seen', 'seenAt', 'checking')
return 1
