-- Lists the refused accounts, and removes from the set the accounts that no longer are.
-- KEYS[1] accounts:troubled (sorted set)
-- ARGV: prefix limit
--   prefix: of the records; account:<id>:state of each is read   limit: number of ids to read at most
-- Result: their ids, longest refused first.
-- Atomic so that an account that is refused again at this moment is not removed. Many events end a refusal
-- (mail gets through, the account is changed or deleted), so the account's state decides, and this set only
-- says where to look.
local ids = redis.call('ZRANGE', KEYS[1], 0, limit - 1)
local found = {}
for _, id in ipairs(ids) do
  local had = redis.call('HMGET', prefix .. id .. ':state', 'state', 'kinds')
  if had[1] == 'held' or had[2] then
    found[#found + 1] = id
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
return found
