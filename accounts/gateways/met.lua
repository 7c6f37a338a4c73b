-- Stores the results of attempts through a gateway.
-- KEYS[1] gateway:<id> (hash)   KEYS[2] gateway:<id>:state (hash)
-- ARGV: took last state rests_until text code at
--   took: number of messages it took   last: last use, ms since 1970, 0 for none   state: empty leaves it
--   rests_until: of the state open, ms   text, code, at: of an error; at in ms, 0 for none
-- Result: 1 if stored, 0 if the gateway was deleted.
-- Atomic so that an attempt that outlived its gateway leaves nothing behind, and counts of several processes add up.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
if took ~= '0' then
  redis.call('HINCRBY', KEYS[2], 'deliveries', took)
end
if tonumber(last) > tonumber(redis.call('HGET', KEYS[2], 'lastUse') or '0') then
  redis.call('HSET', KEYS[2], 'lastUse', last)
end
if state == 'connected' then
  redis.call('HSET', KEYS[2], 'state', 'connected')
  redis.call('HDEL', KEYS[2], 'until', 'lastError', 'lastCode', 'lastErrorAt')
  return 1
end
if at ~= '0' then
  redis.call('HSET', KEYS[2], 'lastError', text, 'lastCode', code, 'lastErrorAt', at)
end
if state == 'open' then
  redis.call('HSET', KEYS[2], 'state', 'open', 'until', rests_until)
elseif state == 'error' and tonumber(redis.call('HGET', KEYS[2], 'until') or '0') <= tonumber(at) then
  redis.call('HSET', KEYS[2], 'state', 'error')
  redis.call('HDEL', KEYS[2], 'until')
end
return 1
