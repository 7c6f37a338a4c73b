-- Stores a new token.
-- KEYS[1] token:<id> (hash)   KEYS[2] tokens (sorted set)   KEYS[3] tokens:account:<account> (sorted set), absent for an unbound token
-- ARGV: id record mac created expire_at
--   record: JSON   mac: of the record   created: ms since 1970   expire_at: of the record, ms since 1970, or +inf for never
-- Result: 1.
-- Atomic so that no token exists that the list does not show, and that could not be found to revoke it. Expired tokens of the account are
-- removed from its set, so that it does not grow for ever.
redis.call('HSET', KEYS[1], 'record', record, 'mac', mac)
if expire_at ~= '+inf' then
  redis.call('PEXPIREAT', KEYS[1], expire_at)
end
redis.call('ZADD', KEYS[2], created, id)
if KEYS[3] then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', created)
  redis.call('ZADD', KEYS[3], expire_at, id)
end
return 1
