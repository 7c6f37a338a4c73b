-- append puts facts into a stream of the inbox, and counts them.
--
-- KEYS[1] the stream   KEYS[2] counts
-- ARGV: most yield added latest facts...
--   most    entries that the stream may hold
--   yield   1: beyond that the oldest entries are dropped; empty if nothing is put in
--   added   numbers to add to counts, JSON
--   latest  values to set, JSON
-- Answer: TAKEN dropped
-- Answer: FULL
-- Atomic so that the bound holds while others put facts in, and only what is in the stream is counted.

local n = #ARGV - facts + 1
local over = redis.call('XLEN', KEYS[1]) + n - tonumber(most)
local dropped = 0
if n > 0 and over > 0 then
  if yield ~= '1' then return FULL end
  dropped = redis.call('XTRIM', KEYS[1], 'MAXLEN', math.max(tonumber(most) - n, 0))
end
for i = facts, #ARGV do redis.call('XADD', KEYS[1], '*', 'f', ARGV[i]) end
for name, by in pairs(cjson.decode(added)) do redis.call('HINCRBY', KEYS[2], name, string.format('%.0f', by)) end
for name, value in pairs(cjson.decode(latest)) do redis.call('HSET', KEYS[2], name, string.format('%.0f', value)) end
return TAKEN
