-- Counts one event in a window that begins with its first event.
-- KEYS[1] the counter
-- ARGV[1] length of the window, ms
-- Result: {events in this window, ms until it ends}.
-- Atomic so that a counter never stays without its expiry, which would block its owner for ever.
local n = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], left)
end
return {n, left}
