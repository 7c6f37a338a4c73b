-- Stores a record unless it changed since it was read. The kind's own lines about the state of a changed record follow.
-- KEYS[1] <kind>:<id> (hash)   KEYS[2] <index> (sorted set)   KEYS[3] <index>:version   KEYS[4] <kind>:<id>:state (hash)
-- ARGV: id read_revision revision record keep_state version fields...
--   read_revision: the one the record was read at; empty if there was none
--   keep_state: 1 if the record says the same as before
--   version: the one that the records must still have; empty for any
--   fields: of the state to set, name and value; an empty value removes the field
-- Result: 1 if stored, 0 if another change was first.
-- Atomic so that no change is lost to another, and every process notices each. Running it twice is the same as once.
local have = redis.call('HGET', KEYS[1], 'revision') or ''
if have == revision then
  return 1
end
if have ~= read_revision then
  return 0
end
if version ~= '' and (redis.call('GET', KEYS[3]) or '0') ~= version then
  return 0
end
redis.call('HSET', KEYS[1], 'revision', revision, 'record', record)
redis.call('ZADD', KEYS[2], 0, id)
redis.call('INCR', KEYS[3])
for i = fields, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[4], ARGV[i])
  else
    redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 1])
  end
end
if keep_state == '1' then
  return 1
end
