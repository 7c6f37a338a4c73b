-- mark notes that the final dot to a person is about to be written. Without it the dot must not be written.
--
-- KEYS[1] log, KEYS[2] gate, KEYS[3] version of the suppressions (absent: they were asked directly before)
-- ARGV: sheet offset gate version
--   gate   as it was when the sheet was taken
-- Answer: GO remaining
-- Answer: CLOSED
-- Answer: LOST
-- Answer: CHANGED
--   GO       remaining: milliseconds of the lease
--   CLOSED   the gate was shut since, though it may be open again
--   LOST     the sheet is no longer the caller's
--   CHANGED  somebody was suppressed since the version was read: ask again
-- Atomic because a gate that is closed, or a lease that ends, in between would not stop the mail.
local lease = redis.call('ZSCORE', KEYS[1] .. ':sheets', sheet)
if not lease then return LOST end
if redis.call('GET', KEYS[2]) ~= gate then return CLOSED end
if KEYS[3] and (redis.call('GET', KEYS[3]) or '') ~= version then return CHANGED end
local now = redis.call('TIME')
local remaining = lease - now[1] * 1000 - math.floor(now[2] / 1000)
if remaining <= 0 then return LOST end
local place = '#' .. offset
local old = redis.call('BITFIELD', KEYS[1], 'SET', 'u4', place, 2)[1]
if old ~= 1 and old ~= 2 then -- 2: the client repeats a call whose answer it lost
  redis.call('BITFIELD', KEYS[1], 'SET', 'u4', place, old)
  return LOST
end
remaining = string.format('%.0f', remaining)
return GO
