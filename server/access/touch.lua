-- Notes the minute in which a token was used.
-- KEYS[1] token:<id> (hash)
-- ARGV[1] minutes since 1970
-- Result: 1 if noted, 0 if the token is gone.
-- Atomic so that a use noted while the token is deleted does not bring back half a record.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'used', ARGV[1])
return 1
