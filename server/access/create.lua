-- Stores a new token.
-- KEYS[1] token:<id> (hash)   KEYS[2] tokens (sorted set)   KEYS[3] tokens:account:<account> (sorted set), absent for an unbound token
-- ARGV[1] id   ARGV[2] record (JSON)   ARGV[3] created, ms since 1970   ARGV[4] when to forget it, ms since 1970, or +inf for never
-- Result: 1.
-- Atomic so that no token exists which the list does not show, and which nobody could find to revoke. Tokens of the account that are
-- forgotten by now leave its set on the way, so that it does not grow for ever.
redis.call('HSET', KEYS[1], 'record', ARGV[2])
if ARGV[4] ~= '+inf' then
  redis.call('PEXPIREAT', KEYS[1], ARGV[4])
end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
if KEYS[3] then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', ARGV[3])
  redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
end
return 1
