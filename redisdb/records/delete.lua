-- Deletes a record and its state.
-- KEYS[1] <kind>:<id> (hash)   KEYS[2] <index> (sorted set)   KEYS[3] <index>:version   KEYS[4] <kind>:<id>:state (hash)
-- ARGV[1] id   ARGV[2] version that the records must still have; empty: any
-- Result: 1 if there was one, else 0; -1 if the version is another one.
-- Atomic so that a record which is gone is in no list, and never one that other processes were not told to forget.
if ARGV[2] ~= '' and (redis.call('GET', KEYS[3]) or '0') ~= ARGV[2] then
  return -1
end
if redis.call('DEL', KEYS[1]) == 0 then
  return 0
end
redis.call('DEL', KEYS[4])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('INCR', KEYS[3])
return 1
