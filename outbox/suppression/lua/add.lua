-- Adds entries of one shard.
-- KEYS[1] suppression:counts   KEYS[2] suppression:version (absent in a Cluster, where one script can't use keys of several partitions)
-- ARGV: now entries...
--   entries: nine values of each entry, which the loop names
-- Result: number of entries that were not in force before.
-- Atomic because an entry, its counts and its indexes must agree, and two entries of the same reason must not undo each other; and because
-- a script that finds an unchanged version must not miss an entry.
local new = 0
if KEYS[2] and redis.call('INCR', KEYS[2]) == 1 then begin_version(KEYS[2]) end

-- expires and evidence may be empty. name is set if the field is a digest of it.
for at = entries, #ARGV, 9 do
  local bucket, field, scope, reason, created, expires, source, evidence, name = unpack(ARGV, at, at + 8)
  local others, old = {}, nil
  for record in string.gmatch(redis.call('HGET', bucket_key(bucket), field) or '', '[^;]+') do
    if string.sub(record, 1, 1) == reason then old = record else others[#others + 1] = record end
  end
  local record = nil -- the new one
  local _, was_created, was_expires, sign
  if old then _, was_created, was_expires, sign = read(old) end
  if not old or ended(was_expires, now) then
    new = new + 1
    sign = evidence ~= '' and '+' or ','
    record = reason .. created .. expires .. sign .. source
  elseif was_expires ~= '' and (expires == '' or expires > was_expires) then -- it lasts longer now, because of the later evidence
    if evidence ~= '' then sign = '+' end
    record = reason .. was_created .. expires .. sign .. source
  else
    record, expires, evidence = old, was_expires, '' -- as it was; written again so that replicas confirm it
  end
  if not old then count(reason, scope, 1) end
  others[#others + 1] = record
  redis.call('HSET', bucket_key(bucket), field, table.concat(others, ';'))
  if evidence ~= '' then
    redis.call('HSET', evidence_key(bucket), reason .. field, evidence)
  elseif old and sign == ',' then
    redis.call('HDEL', evidence_key(bucket), reason .. field)
  end
  if name ~= '' then redis.call('HSET', evidence_key(bucket), field, name) end
  if not old then
    redis.call('SETBIT', ROOT .. 'index:' .. reason .. ':' .. scope, group_of(bucket), 1)
    redis.call('SETBIT', ROOT .. 'index:' .. reason .. ':*', group_of(bucket), 1)
  end
  if expires ~= '' then redis.call('SETBIT', ROOT .. 'expiring', group_of(bucket), 1) end
end

write_counts()
return new
