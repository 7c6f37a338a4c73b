-- Lists the accounts that are in trouble, and forgets those that no longer are.
-- KEYS[1] accounts:troubled (sorted set)
-- ARGV[1] prefix of the records: account:<id>:state is read of each   ARGV[2] how many to list at most
-- Result: their ids, the oldest trouble first.
-- Atomic so that an account which is refused again just now is not forgotten. An account ends its trouble in many places (mail gets
-- through, it is edited, deleted): its state is the truth, and this set says only where to look.
local ids = redis.call('ZRANGE', KEYS[1], 0, tonumber(ARGV[2]) - 1)
local found = {}
for _, id in ipairs(ids) do
  local had = redis.call('HMGET', ARGV[1] .. id .. ':state', 'state', 'kinds')
  if had[1] == 'held' or had[2] then
    found[#found + 1] = id
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
return found
