-- disable switches an endpoint off and writes the event.
--
-- KEYS[1] hash of endpoints switched off
-- ARGV: endpoint off url event
--   off    why it is off, and at which URL, JSON
--   event  the webhookDisabled event
-- Result 1 switched off now, 0 it was off at this URL already
-- Atomic because the event must be written exactly once, and never without the change.

local before = redis.call('HGET', KEYS[1], endpoint)
if before and cjson.decode(before).url == url then return 0 end
redis.call('HSET', KEYS[1], endpoint, off)
redis.call('INCR', hook .. 'version')
redis.call('XADD', prefix .. 'events', '*', 'e', event)
return 1
