-- Removes the entries of one scope about an address or a domain.
-- KEYS[1] suppression:counts
-- ARGV: bucket field scope letter now
--   letter: the reason's; empty for all reasons
-- Result: number of removed entries that were in force.
-- Atomic because an entry, its counts and its indexes must agree.
local kept, removed, held = {}, 0, 0
for record in string.gmatch(redis.call('HGET', bucket_key(bucket), field) or '', '[^;]+') do
  local reason, _, expires = read(record)
  if letter == '' or letter == reason then
    removed = removed + 1
    if not ended(expires, now) then held = held + 1 end
    count(reason, scope, -1)
    redis.call('HDEL', evidence_key(bucket), reason .. field)
  else
    kept[#kept + 1] = record
  end
end
if removed == 0 then return 0 end
if #kept > 0 then
  redis.call('HSET', bucket_key(bucket), field, table.concat(kept, ';'))
else
  redis.call('HDEL', bucket_key(bucket), field)
  redis.call('HDEL', evidence_key(bucket), field)
end
unmark(group_of(bucket))
write_counts()
return held
