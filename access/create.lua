-- Stores a new token.
-- KEYS[1] token:<id> (hash)   KEYS[2] tokens (sorted set)
-- ARGV[1] id   ARGV[2] record (JSON)   ARGV[3] created, ms since 1970   ARGV[4] when to forget it, ms since 1970, or 0 for never
-- Result: 1.
-- Atomic so that no token exists which the list does not show, and which nobody could find to revoke.
redis.call('HSET', KEYS[1], 'record', ARGV[2])
if ARGV[4] ~= '0' then
  redis.call('PEXPIREAT', KEYS[1], ARGV[4])
end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
return 1
