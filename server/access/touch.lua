-- Stores the minute in which a token was used, and from where.
-- KEYS[1] token:<id> (hash)
-- ARGV: minute from
--   minute: since 1970   from: an address, or empty
-- Result: 1 if stored, 0 if the token is gone.
-- Atomic so that a use that is stored while the token is deleted does not bring back half a record.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'used', minute, 'from', from)
return 1
