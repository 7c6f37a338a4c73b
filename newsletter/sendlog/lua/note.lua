-- note sets bits of people, and counts the bits that were not set.
--
-- KEYS[1] log
-- ARGV: notes...
--   notes   offset, bit, the field that counts all of its kind, and another one that counts the bit, in turns. '' for none
-- Answer: OK fresh
--   fresh   for each, 1 if the bit was not set before
-- Atomic because counters and bits must agree.
local fresh, offsets = {}, {}
for i = notes, #ARGV, 4 do offsets[#offsets + 1] = ARGV[i] end
read_groups(KEYS[1], offsets)
for i = notes, #ARGV, 4 do
  local bit, total, once = ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local new = redis.call('SETBIT', KEYS[1] .. ':' .. bit, ARGV[i], 1) == 0
  if new then add(ARGV[i], bit, 1) end
  if new and once ~= '' then added[once] = (added[once] or 0) + 1 end
  if total ~= '' then added[total] = (added[total] or 0) + 1 end
  fresh[#fresh + 1] = new and '1' or '0'
end
write_people(KEYS[1])
fresh = table.concat(fresh)
return OK
