-- plan moves an entry that was claimed to another time, or removes it.
--
-- KEYS[1] recipient, KEYS[2] due, KEYS[3] open, KEYS[4] fences
-- ARGV: held fence version member time
--   held    the member of open
--   member  the member of due; '' if it is removed
--   time    when it is due
-- Answer: STALE
-- Answer: CHANGED
-- Answer: PLANNED
if redis.call('HGET', KEYS[4], held) ~= fence then return STALE end
if (redis.call('HGET', KEYS[1], 'version') or '') ~= version then return CHANGED end
redis.call('ZREM', KEYS[3], held)
redis.call('HDEL', KEYS[4], held)
if member ~= '' then redis.call('ZADD', KEYS[2], 'LT', time, member) end
return PLANNED
