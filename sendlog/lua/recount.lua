-- recount compares the counters of a chunk with its states and bits, and replaces those that differ.
--
-- KEYS[1] log
-- ARGV: bits...
-- Answer: OK changed
-- Atomic because states change meanwhile.
local log, sums = redis.call('GET', KEYS[1]) or '', {}
for s = 0, 15 do sums[s] = 0 end
for i = 1, #log do
  local b = string.byte(log, i)
  local high = math.floor(b / 16)
  sums[high] = sums[high] + 1
  sums[b % 16] = sums[b % 16] + 1
end
local counts, changed, taken = KEYS[1] .. ':counts', 0, 0
local function put(field, n)
  if tonumber(redis.call('HGET', counts, field) or '0') ~= n then
    redis.call('HSET', counts, field, n)
    changed = changed + 1
  end
end
for s = 1, 15 do taken = taken + sums[s] end
for s = 3, 15 do put(tostring(s), sums[s]) end
put('taken', taken)
for i = bits, #ARGV do put(ARGV[i], redis.call('BITCOUNT', KEYS[1] .. ':' .. ARGV[i])) end
return OK
