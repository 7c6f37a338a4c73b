-- Runs after records/put.lua has stored a changed account.
-- KEYS[4] account:<id>:state (hash)
-- The state was the previous account's, so it becomes unset. If its mail is held, it stays held until a
-- message gets through, but the next check is due immediately.
if redis.call('HGET', KEYS[4], 'state') == 'held' then
  redis.call('HSET', KEYS[4], 'next', 0, 'step', 0)
  redis.call('HDEL', KEYS[4], 'kinds', 'seen', 'seenAt', 'checking', 'of')
else
  redis.call('DEL', KEYS[4])
end
