-- Runs after records/put.lua has stored a changed gateway.
-- KEYS[4] gateway:<id>:state (hash)
-- The state was the previous relay's, so it becomes unset. The deliveries stay counted.
-- The webhook has not been compared with the new settings.
redis.call('HDEL', KEYS[4], 'state', 'until', 'lastError', 'lastCode', 'lastErrorAt', 'hookError')
if redis.call('HEXISTS', KEYS[4], 'hook') == 1 then
  redis.call('HSET', KEYS[4], 'hook', 'unknown')
end
