-- settle sets the states of people, each if the one before allows it.
--
-- KEYS[1] log
-- ARGV: sheet now keep moves...
--   sheet  of the people; '': any. If it has ended, another worker may have them: only sent is still true
--   now    Unix milliseconds
--   keep   most replies that are kept of a chunk
--   moves  offset, state, letters of the states before, and a reply, in turns. '': no reply
-- Answer: OK changed
--   changed  for each, 1 if its state was changed
-- Atomic because counters and states must agree.
local changed, why = '', KEYS[1] .. ':why'
local held = sheet == '' or redis.call('ZSCORE', KEYS[1] .. ':sheets', sheet)
for i = moves, #ARGV, 4 do
  local ok = (held or ARGV[i + 1] == '3') and change(KEYS[1], ARGV[i], ARGV[i + 1], ARGV[i + 2])
  changed = changed .. (ok and '1' or '0')
  if ok and ARGV[i + 3] ~= '' and redis.call('HLEN', why) < tonumber(keep) then
    redis.call('HSET', why, ARGV[i], now .. ' ' .. ARGV[i + 3])
  end
end
return OK
