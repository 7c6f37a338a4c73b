-- Stores a record, unless somebody changed it since it was read. What its package does with the state of a changed one follows this text.
-- KEYS[1] <kind>:<id> (hash)   KEYS[2] <index> (sorted set)   KEYS[3] <index>:version   KEYS[4] <kind>:<id>:state (hash)
-- ARGV[1] id   ARGV[2] revision it was read at, empty for none   ARGV[3] revision it gets   ARGV[4] record
-- ARGV[5] 1 if the record says the same as before: its state is kept
-- ARGV[6] version that the records must still have; empty: any   ARGV[7]… fields of the state to set, name and value; an empty value removes
-- Result: 1 if stored, 0 if somebody else was first.
-- Atomic so that no change is lost to another, and none goes unnoticed by other processes. Running it twice is the same as once.
local have = redis.call('HGET', KEYS[1], 'revision') or ''
if have == ARGV[3] then
  return 1
end
if have ~= ARGV[2] then
  return 0
end
if ARGV[6] ~= '' and (redis.call('GET', KEYS[3]) or '0') ~= ARGV[6] then
  return 0
end
redis.call('HSET', KEYS[1], 'revision', ARGV[3], 'record', ARGV[4])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('INCR', KEYS[3])
for i = 7, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[4], ARGV[i])
  else
    redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 1])
  end
end
if ARGV[5] == '1' then
  return 1
end
