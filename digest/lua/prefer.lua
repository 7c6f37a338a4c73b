-- prefer stores a recipient's address and preferences, and plans waiting events again.
--
-- KEYS[1] recipient, KEYS[2] recipients of the account, KEYS[3] due
-- ARGV: version now id fields gone kept plans...
--   version  the caller knows the recipient at this version; '' if there is none
--   fields   JSON: fields of the recipient; an empty one is removed
--   gone     JSON: members of due that are planned no more
--   kept     JSON: members of due that finish before the change
--   plans    member and time due of each schedule that something waits for
-- Answer: CHANGED
-- Answer: STORED
--   CHANGED  the recipient has another version, or a worker took what was to finish first
-- Atomic because events that wait by the old preferences would never be due by the new ones.
if (redis.call('HGET', KEYS[1], 'version') or '') ~= version then return CHANGED end
for _, member in ipairs(cjson.decode(kept)) do
  if not redis.call('ZSCORE', KEYS[3], member) then return CHANGED end
end
for field, value in pairs(cjson.decode(fields)) do
  if value == '' then redis.call('HDEL', KEYS[1], field) else redis.call('HSET', KEYS[1], field, value) end
end
redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('HSETNX', KEYS[1], 'created', now)
redis.call('HSET', KEYS[1], 'updated', now)
redis.call('ZADD', KEYS[2], 0, id)
for _, member in ipairs(cjson.decode(gone)) do redis.call('ZREM', KEYS[3], member) end
for i = plans, #ARGV, 2 do redis.call('ZADD', KEYS[3], ARGV[i + 1], ARGV[i]) end
return STORED
