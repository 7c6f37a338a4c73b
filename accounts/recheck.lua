-- Makes the next check of an account due immediately if its mail is held: one of its gateways has changed.
-- KEYS[1] account:<id>:state (hash)   KEYS[2] accounts:version
-- Result: 1 if it is held, else 0.
-- Atomic so that an account that is no longer held gets no check. Running it twice is the same as once.
if redis.call('HGET', KEYS[1], 'state') ~= 'held' then
  return 0
end
redis.call('HSET', KEYS[1], 'next', 0, 'step', 0)
redis.call('HDEL', KEYS[1], 'kinds', 'seen', 'seenAt', 'checking')
redis.call('INCR', KEYS[2])
return 1
