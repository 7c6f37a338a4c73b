-- add adds entries of one shard.
--
-- KEYS: 1 suppression:counts   2 suppression:version (absent where keys of several partitions can't stand in one script)
-- ARGV: 1 now, then for each entry nine: bucket, field, scope, letter of the reason, created, expires or '', source, evidence or '', the
--       name where the field is a digest of it, else ''
-- Result: how many of them did not hold before
-- Atomic, because an entry, its counts and its indexes must agree, and two of the same reason must not undo each other; and because who
-- finds the version as it was must not miss an entry.

local now = ARGV[1]
local new = 0
if KEYS[2] and redis.call('INCR', KEYS[2]) == 1 then begin_version(KEYS[2]) end

for i = 2, #ARGV, 9 do
  local bucket, field, scope, reason = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local created, expires, source, evidence, name = ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7], ARGV[i + 8]
  local others, old = {}, nil
  for record in string.gmatch(redis.call('HGET', bucket_key(bucket), field) or '', '[^;]+') do
    if string.sub(record, 1, 1) == reason then old = record else others[#others + 1] = record end
  end
  local record = nil -- what is to stand there
  local _, was_created, was_expires, sign
  if old then _, was_created, was_expires, sign = read(old) end
  if not old or ended(was_expires, now) then
    new = new + 1
    sign = evidence ~= '' and '+' or ','
    record = reason .. created .. expires .. sign .. source
  elseif was_expires ~= '' and (expires == '' or expires > was_expires) then -- it lasts longer now: the later evidence is why
    if evidence ~= '' then sign = '+' end
    record = reason .. was_created .. expires .. sign .. source
  else
    record, expires, evidence = old, was_expires, '' -- as it was; written all the same, for the replicas to confirm
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
