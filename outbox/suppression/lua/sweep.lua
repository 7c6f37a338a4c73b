-- Removes the expired entries of a group of buckets.
-- KEYS[1] suppression:counts
-- ARGV: group now
-- Result: number of removed entries.
-- Atomic because an entry that is extended at this moment must stay.
local removed = 0
for bucket = group * GROUP, group * GROUP + GROUP - 1 do
  local all = redis.call('HGETALL', bucket_key(bucket))
  for i = 1, #all, 2 do
    local field, kept, gone = all[i], {}, {}
    for record in string.gmatch(all[i + 1], '[^;]+') do
      local reason, _, expires = read(record)
      if ended(expires, now) then gone[#gone + 1] = reason else kept[#kept + 1] = record end
    end
    if #gone > 0 then
      local scope = scope_of(bucket, field)
      for _, reason in ipairs(gone) do
        count(reason, scope, -1)
        redis.call('HDEL', evidence_key(bucket), reason .. field)
      end
      removed = removed + #gone
      if #kept > 0 then
        redis.call('HSET', bucket_key(bucket), field, table.concat(kept, ';'))
      else
        redis.call('HDEL', bucket_key(bucket), field)
        redis.call('HDEL', evidence_key(bucket), field)
      end
    end
  end
end
unmark(group)
write_counts()
return removed
