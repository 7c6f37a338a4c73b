-- Deletes a record and its state.
-- KEYS[1] <kind>:<id> (hash)   KEYS[2] <index> (sorted set)   KEYS[3] <index>:version   KEYS[4] <kind>:<id>:state (hash)
-- ARGV: id version
--   version: the one that the records must still have; empty for any
-- Result: 1 if there was one, else 0; -1 if the version is another one.
-- Atomic so that a deleted record is in no list, and every process learns that it is gone.
if version ~= '' and (redis.call('GET', KEYS[3]) or '0') ~= version then
  return -1
end
if redis.call('DEL', KEYS[1]) == 0 then
  return 0
end
redis.call('DEL', KEYS[4])
redis.call('ZREM', KEYS[2], id)
redis.call('INCR', KEYS[3])
return 1
