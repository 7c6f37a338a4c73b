-- Stores an account, unless somebody changed it since it was read.
-- KEYS[1] account:<id> (hash)   KEYS[2] accounts (sorted set)   KEYS[3] accounts:version   KEYS[4] account:<id>:state (hash)
-- ARGV[1] id   ARGV[2] revision it was read at, empty for none   ARGV[3] revision it gets   ARGV[4] record (JSON)
-- ARGV[5] 1 if the account is as before but for its sealing: its state is kept
-- Result: 1 if stored, 0 if somebody else was first.
-- Atomic so that no change is lost to another, and no changed account goes unnoticed by other processes. Its state is unset: it was
-- that of the account before. If its mail is held, that stays so until a message got through, but the next check is due at once.
-- Running it twice is the same as once.
local have = redis.call('HGET', KEYS[1], 'revision') or ''
if have == ARGV[3] then
  return 1
end
if have ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], 'revision', ARGV[3], 'record', ARGV[4])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('INCR', KEYS[3])
if ARGV[5] == '1' then
  return 1
end
if redis.call('HGET', KEYS[4], 'state') == 'held' then
  redis.call('HSET', KEYS[4], 'next', 0, 'step', 0)
  redis.call('HDEL', KEYS[4], 'kinds', 'seen', 'seenAt', 'checking', 'of')
else
  redis.call('DEL', KEYS[4])
end
return 1
