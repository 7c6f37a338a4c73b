-- Appends an entry to the chain, if its head is still the one that the entry was made for.
-- KEYS[1] audit (stream)   KEYS[2] audit:head (hash)   KEYS[3] audit:open (sorted set)
-- ARGV: expected id seq text hash key mac begins ends
--   expected: hash of the head; empty: there is no entry yet
--   begins: 1 if the entry is an intent   ends: number of the intent that it ends; 0: none
-- Answer: OK
-- Answer: MOVED head_id head_seq head_hash
-- Atomic so that two processes never append to the same head, and an intent is open exactly until its result. Running it twice is the
-- same as once.
local head = redis.call('HMGET', KEYS[2], 'id', 'seq', 'hash')
local head_id, head_seq, head_hash = head[1] or '', head[2] or '0', head[3] or ''
if head_hash == hash then
  return OK
end
if head_hash ~= expected then
  return MOVED
end
redis.call('XADD', KEYS[1], id, 'e', text, 'h', hash, 'k', key, 'm', mac)
redis.call('HSET', KEYS[2], 'id', id, 'seq', seq, 'hash', hash)
if begins == '1' then
  redis.call('ZADD', KEYS[3], seq, seq)
end
if ends ~= '0' then
  redis.call('ZREM', KEYS[3], ends)
end
return OK
