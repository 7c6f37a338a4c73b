-- Replaces the seal of an owner's record. Its lifetime stays.
-- KEYS[1] oauth:<owner> (string)   KEYS[2] oauth:owners (set)
-- ARGV: owner before after
--   before: the record as it was read, empty for none   after: the same under the new seal
-- Result: 1 if replaced, 0 if it is another one, or there is none.
-- Atomic because tokens may be replaced at any time, and an owner whose record has just been stored must stay in the set.
local stored = redis.call('GET', KEYS[1]) or ''
if stored ~= before then
  return 0
end
if stored == '' then
  redis.call('SREM', KEYS[2], owner)
  return 0
end
redis.call('SET', KEYS[1], after, 'KEEPTTL')
return 1
