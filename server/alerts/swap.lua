-- Changes one alert, with its event.
-- KEYS[1] alerts (hash)   KEYS[2] events (stream)
-- ARGV: alert before after event
--   before: its state as it was read, empty for none   after: its new state, empty for none
--   event: of the change, a line of JSON; empty for none
-- Result: 1, or 0 if the state is another one: another process was faster, and nothing is done.
-- Atomic so that only one of the processes that notice a problem raises the alert, and no alert is without
-- its event.
if (redis.call('HGET', KEYS[1], alert) or '') ~= before then
  return 0
end
if after == '' then
  redis.call('HDEL', KEYS[1], alert)
else
  redis.call('HSET', KEYS[1], alert, after)
end
if event ~= '' then
  redis.call('XADD', KEYS[2], '*', 'e', event)
end
return 1
