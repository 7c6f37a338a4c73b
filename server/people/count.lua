-- Counts one event in a window that begins with its first event.
-- KEYS[1] the counter
-- ARGV: window
--   window: its length, ms
-- Result: the events in the window.
-- Atomic so that a counter never stays without its expiry, which would block its owner for ever.
local events = redis.call('INCR', KEYS[1])
if events == 1 then
  redis.call('PEXPIRE', KEYS[1], window)
end
return events
