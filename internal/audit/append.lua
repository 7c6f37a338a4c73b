-- Appends an entry to the chain, if its head is still the one that the entry was made for.
-- KEYS[1] audit (stream)   KEYS[2] audit:head (hash)   KEYS[3] audit:intents (hash)
-- ARGV: expected id seq text hash key mac ends once
--   expected: hash of the head; empty if there is no entry yet
--   ends: name of the intent that it ends; empty: none   once: 1 if nothing is to be written when that intent is gone
-- Answer: OK length
--   length: of the stream, with this entry
-- Answer: GONE
-- Answer: MOVED head_id head_seq head_hash
-- Atomic so that two processes never append to the same head, and an intent is kept exactly until its entry is written. Running it
-- twice is the same as once.
local head = redis.call('HMGET', KEYS[2], 'id', 'seq', 'hash')
local head_id, head_seq, head_hash = head[1] or '', head[2] or '0', head[3] or ''
if head_hash == hash then
  local length = redis.call('XLEN', KEYS[1])
  return OK
end
if head_hash ~= expected then
  return MOVED
end
if once == '1' and redis.call('HEXISTS', KEYS[3], ends) == 0 then
  return GONE
end
redis.call('XADD', KEYS[1], id, 'e', text, 'h', hash, 'k', key, 'm', mac)
redis.call('HSET', KEYS[2], 'id', id, 'seq', seq, 'hash', hash)
redis.call('HDEL', KEYS[3], ends)
local length = redis.call('XLEN', KEYS[1])
return OK
