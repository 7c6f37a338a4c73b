-- Counts one event in a window that begins with its first event.
-- KEYS[1] the counter
-- ARGV: window
--   window: its length, ms
-- Answer: COUNTED events left
--   left: ms until the window ends
-- Atomic so that a counter never stays without its expiry, which would block its owner for ever.
local events = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = window
  redis.call('PEXPIRE', KEYS[1], left)
end
return COUNTED
