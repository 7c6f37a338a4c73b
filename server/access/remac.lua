-- Replaces the code of a token's record by one under the current secret.
-- KEYS[1] token:<id> (hash)
-- ARGV: before after
--   before: the code as it was read   after: the new one, of the same record
-- Result: 1 if replaced, 0 if it has changed or is gone.
-- Atomic so that a token deleted in between does not come back as half a record. A record never changes under
-- its code.
if redis.call('HGET', KEYS[1], 'mac') ~= before then
  return 0
end
redis.call('HSET', KEYS[1], 'mac', after)
return 1
