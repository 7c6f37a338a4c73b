-- note sets bits of people, and counts those that were not set.
--
-- KEYS[1] log
-- ARGV: notes...
--   notes   offset, bit, the field that counts all of its kind, and another one that counts the bit, in turns. '': none
-- Answer: OK fresh
--   fresh   for each, 1 if the bit was not set before
-- Atomic because counters and bits must agree.
local fresh = ''
for i = notes, #ARGV, 4 do
  local bit, total, once = ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local new = redis.call('SETBIT', KEYS[1] .. ':' .. bit, ARGV[i], 1) == 0
  if new then add(KEYS[1], ARGV[i], bit, 1) end
  if new and once ~= '' then redis.call('HINCRBY', KEYS[1] .. ':counts', once, 1) end
  if total ~= '' then redis.call('HINCRBY', KEYS[1] .. ':counts', total, 1) end
  fresh = fresh .. (new and '1' or '0')
end
return OK
