-- Runs after records/put.lua stored a gateway that was changed.
-- KEYS[4] gateway:<id>:state (hash)
-- Its state is unset: it was that of the relay before; what it delivered stays counted.
redis.call('HDEL', KEYS[4], 'state', 'until', 'lastError', 'lastCode', 'lastErrorAt')
