-- Notes that the account from the configuration is another one than the one whose mail is held: the next check is due at once.
-- KEYS[1] account:<id>:state (hash)
-- ARGV[1] which configured account there is now
-- Result: 1 if it was so, else 0.
-- Atomic so that a check which another process has just claimed is not claimed again.
local had = redis.call('HMGET', KEYS[1], 'state', 'of')
if had[1] ~= 'held' or (had[2] or '') == ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'of', ARGV[1], 'next', 0, 'step', 0)
redis.call('HDEL', KEYS[1], 'kinds', 'seen', 'seenAt', 'checking')
return 1
