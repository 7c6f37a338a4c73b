-- Notes what a gateway met.
-- KEYS[1] gateway:<id> (hash)   KEYS[2] gateway:<id>:state (hash)
-- ARGV[1] messages it took   ARGV[2] last use, ms since 1970, 0 for none   ARGV[3] state, empty to leave it
-- ARGV[4] until when it rests, ms, for the state open   ARGV[5] error   ARGV[6] its code   ARGV[7] when, ms; 0 for no error
-- Result: 1 if noted, 0 if the gateway is gone.
-- Atomic so that the end of an attempt that outlived its gateway leaves nothing behind, and counts of several processes add up.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
if ARGV[1] ~= '0' then
  redis.call('HINCRBY', KEYS[2], 'deliveries', ARGV[1])
end
if tonumber(ARGV[2]) > tonumber(redis.call('HGET', KEYS[2], 'lastUse') or '0') then
  redis.call('HSET', KEYS[2], 'lastUse', ARGV[2])
end
if ARGV[3] == 'connected' then
  redis.call('HSET', KEYS[2], 'state', 'connected')
  redis.call('HDEL', KEYS[2], 'until', 'lastError', 'lastCode', 'lastErrorAt')
  return 1
end
if ARGV[7] ~= '0' then
  redis.call('HSET', KEYS[2], 'lastError', ARGV[5], 'lastCode', ARGV[6], 'lastErrorAt', ARGV[7])
end
if ARGV[3] == 'open' then
  redis.call('HSET', KEYS[2], 'state', 'open', 'until', ARGV[4])
elseif ARGV[3] == 'error' and tonumber(redis.call('HGET', KEYS[2], 'until') or '0') <= tonumber(ARGV[7]) then
  redis.call('HSET', KEYS[2], 'state', 'error')
  redis.call('HDEL', KEYS[2], 'until')
end
return 1
