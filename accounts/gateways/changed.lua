-- Runs after records/put.lua has stored a changed gateway.
-- KEYS[4] gateway:<id>:state (hash)
-- The state was that of the relay before, so it becomes unset. The deliveries stay counted.
redis.call('HDEL', KEYS[4], 'state', 'until', 'lastError', 'lastCode', 'lastErrorAt')
