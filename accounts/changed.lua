-- Runs after records/put.lua stored an account that was changed.
-- KEYS[4] account:<id>:state (hash)
-- Its state is unset: it was that of the account before. If its mail is held, that stays so until a message got through, but the next
-- check is due at once.
if redis.call('HGET', KEYS[4], 'state') == 'held' then
  redis.call('HSET', KEYS[4], 'next', 0, 'step', 0)
  redis.call('HDEL', KEYS[4], 'kinds', 'seen', 'seenAt', 'checking', 'of')
else
  redis.call('DEL', KEYS[4])
end
