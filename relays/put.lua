-- Stores a gateway, unless somebody changed it since it was read.
-- KEYS[1] gateway:<id> (hash)   KEYS[2] gateways (sorted set)   KEYS[3] gateways:version   KEYS[4] gateway:<id>:state (hash)
-- ARGV[1] id   ARGV[2] revision it was read at, empty for none   ARGV[3] revision it gets   ARGV[4] record (JSON)
-- ARGV[5] 1 if the gateway is as before but for its sealing: its state is kept
-- Result: 1 if stored, 0 if somebody else was first.
-- Atomic so that no change is lost to another, and no changed gateway goes unnoticed by other processes. Its state is unset: it was
-- that of the relay before; what it delivered stays counted. Running it twice is the same as once.
local have = redis.call('HGET', KEYS[1], 'revision') or ''
if have == ARGV[3] then
  return 1
end
if have ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], 'revision', ARGV[3], 'record', ARGV[4])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('INCR', KEYS[3])
if ARGV[5] ~= '1' then
  redis.call('HDEL', KEYS[4], 'state', 'until', 'lastError', 'lastCode', 'lastErrorAt')
end
return 1
