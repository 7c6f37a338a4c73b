-- Replaces a token: stores a new one, and when the old one ends.
-- KEYS[1] token:<id of the old one> (hash)   KEYS[2] token:<id of the new one> (hash)   KEYS[3] tokens (sorted set)
-- KEYS[4] tokens:version   KEYS[5] tokens:account:<account> (sorted set), absent for unbound tokens
-- ARGV: before old_id old_record old_mac old_expire_at id record mac created expire_at
--   before: MAC of the old record as it was read   created: ms since 1970
--   expire_at, old_expire_at: of the records, ms since 1970; expire_at may be +inf for never
-- Result: 1, or 0 if the old token is gone or was changed since it was read.
-- Atomic so that only one of two concurrent rotations happens, and no old token ends without its successor.
if redis.call('HGET', KEYS[1], 'mac') ~= before then
  return 0
end
redis.call('HSET', KEYS[2], 'record', record, 'mac', mac)
if expire_at ~= '+inf' then
  redis.call('PEXPIREAT', KEYS[2], expire_at)
end
redis.call('ZADD', KEYS[3], created, id)
redis.call('HSET', KEYS[1], 'record', old_record, 'mac', old_mac)
redis.call('PEXPIREAT', KEYS[1], old_expire_at)
if KEYS[5] then
  redis.call('ZADD', KEYS[5], expire_at, id, old_expire_at, old_id)
end
redis.call('INCR', KEYS[4])
return 1
