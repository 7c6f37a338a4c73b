-- Moves the beginning of the chain: deletes the entries up to one that becomes the checkpoint.
-- KEYS[1] audit (stream)   KEYS[2] audit:checkpoint (hash)
-- ARGV: id seq hash key mac
-- Result: number of entries that were deleted.
-- Atomic so that the chain never begins elsewhere than its checkpoint says. A checkpoint is never moved back.
if tonumber(redis.call('HGET', KEYS[2], 'seq') or '0') > tonumber(seq) then
  return 0
end
redis.call('HSET', KEYS[2], 'id', id, 'seq', seq, 'hash', hash, 'key', key, 'mac', mac)
local gone = redis.call('XTRIM', KEYS[1], 'MINID', id)
return gone + redis.call('XDEL', KEYS[1], id)
