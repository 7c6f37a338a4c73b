-- disable switches an endpoint off and says so in the event stream.
--
-- KEYS[1] hash of endpoints switched off
-- ARGV 1 endpoint, 2 what to keep about it (JSON), 3 its URL, 4 the webhookDisabled event
-- Result 1 switched off now, 0 it was off at this URL already
-- Atomic because the event must be told exactly once, and never without the change.

local before = redis.call('HGET', KEYS[1], ARGV[1])
if before and cjson.decode(before).url == ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('INCR', hook .. 'version')
redis.call('XADD', prefix .. 'events', '*', 'e', ARGV[4])
return 1
