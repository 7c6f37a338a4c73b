-- Changes one alert, with its event.
-- KEYS[1] alerts (hash)   KEYS[2] events (stream)
-- ARGV[1] the alert   ARGV[2] its state as it was read, empty for none   ARGV[3] its state from now on, empty for none
-- ARGV[4] the event of the change, a line of JSON; empty for none
-- Result: 1, or 0 when the state is another one: somebody was faster, and nothing is done.
-- Atomic so that of all processes which notice a trouble one raises the alert, and so that no alert is without its event.
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then
  return 0
end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
if ARGV[4] ~= '' then
  redis.call('XADD', KEYS[2], '*', 'e', ARGV[4])
end
return 1
