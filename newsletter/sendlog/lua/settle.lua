-- settle sets the states of people, each if the one before allows it.
--
-- KEYS[1] log
-- ARGV: sheet keep moves...
--   sheet  of the people; '': any. If it has ended, another worker may have them: only sent is still true
--   keep   most replies that are kept of a chunk
--   moves  offset, state, letters of the states before, a reply ('': none), attempts made (0: as before, -1: one
--          more, -2: see note_attempt) and the time of the last attempt in Unix milliseconds, in turns
-- Answer: OK changed
--   changed  for each, 1 if its state was changed
-- Atomic because counters and states must agree.
local changed, why = '', KEYS[1] .. ':why'
local held = sheet == '' or redis.call('ZSCORE', KEYS[1] .. ':sheets', sheet)
for i = moves, #ARGV, 6 do
  local ok = (held or ARGV[i + 1] == '3') and change(KEYS[1], ARGV[i], ARGV[i + 1], ARGV[i + 2])
  changed = changed .. (ok and '1' or '0')
  if ok and ARGV[i + 3] == '' then
    redis.call('HDEL', why, ARGV[i]) -- it was about the state before
  elseif ok and (redis.call('HEXISTS', why, ARGV[i]) == 1 or redis.call('HLEN', why) < tonumber(keep)) then
    redis.call('HSET', why, ARGV[i], ARGV[i + 3])
  end
  if ok and ARGV[i + 4] ~= '0' then note_attempt(KEYS[1], ARGV[i], ARGV[i + 5], tonumber(ARGV[i + 4])) end
end
return OK
