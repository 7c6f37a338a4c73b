-- reseal puts an owner's record under another seal; how long it is kept does not change.
--
-- KEYS[1] record, KEYS[2] set of owners
-- ARGV 1 owner, 2 the record as the caller saw it (empty: none), 3 the record under the new seal
-- Result 1 replaced, 0 it is another one, or there is none
-- Atomic because tokens are replaced at any time, and because an owner whose record has just come must stay in the set.

local stored = redis.call('GET', KEYS[1]) or ''
if stored ~= ARGV[2] then return 0 end
if stored == '' then
  redis.call('SREM', KEYS[2], ARGV[1])
  return 0
end
redis.call('SET', KEYS[1], ARGV[3], 'KEEPTTL')
return 1
