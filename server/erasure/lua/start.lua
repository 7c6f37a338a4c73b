-- start stores an erasure, unless one of the same person and account is under way.
--
-- KEYS[1] erasure-of:<hash>   KEYS[2] erasure:<id>   KEYS[3] erasures
-- ARGV: id record
-- Result: id of the one under way
-- Atomic because two concurrent calls must have one erasure.
local under_way = redis.call('GET', KEYS[1])
if under_way then return under_way end
redis.call('SET', KEYS[1], id)
redis.call('SET', KEYS[2], record)
redis.call('ZADD', KEYS[3], 0, id)
return id
