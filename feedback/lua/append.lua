-- append.lua puts facts into a stream of the inbox, and counts them.
--
-- KEYS[1]  the stream
-- KEYS[2]  counts
-- ARGV[1]  entries that may stand in the stream
-- ARGV[2]  1: the oldest make room; 0: nothing is put in when there is no room
-- ARGV[3]  number of counts, ARGV[4…]  field and by how much, for each
-- then     the fields to be set: number, field and value for each
-- then     the entries
-- Returns {0} there is no room, {1, dropped}.
-- Atomic so that a bound is a bound, whoever else is putting facts in, and that what is counted is there.

local most, at = tonumber(ARGV[1]), 3
local counts = at
at = at + 1 + 2 * tonumber(ARGV[at])
local sets = at
at = at + 1 + 2 * tonumber(ARGV[at])
local n = #ARGV - at + 1
local over = redis.call('XLEN', KEYS[1]) + n - most
local dropped = 0
if n > 0 and over > 0 then
  if ARGV[2] ~= '1' then return {0} end
  dropped = redis.call('XTRIM', KEYS[1], 'MAXLEN', math.max(most - n, 0))
end
for i = at, #ARGV do redis.call('XADD', KEYS[1], '*', 'f', ARGV[i]) end
for i = counts + 1, counts + 2 * tonumber(ARGV[counts]), 2 do redis.call('HINCRBY', KEYS[2], ARGV[i], ARGV[i + 1]) end
for i = sets + 1, sets + 2 * tonumber(ARGV[sets]), 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
return {1, dropped}
