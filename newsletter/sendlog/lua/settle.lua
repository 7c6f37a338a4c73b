-- settle sets the states of people, each if the one before allows it.
--
-- KEYS[1] log
-- ARGV: keep moves...
--   keep   most replies that are kept of a chunk
--   moves  sheet of the person ('': any; if it has ended, another worker may have the person: only sent is still true),
--          offset, state, letters of the states before, a reply ('': none), attempts made (0: as before, -1: one more,
--          -2: see note_attempt) and the time of the last attempt in Unix milliseconds, in turns
-- Answer: OK changed
--   changed  for each, 1 if its state was changed
-- Atomic because counters and states must agree.
local changed, held, offsets, why = {}, {['']=true}, {}, KEYS[1] .. ':why'
for i = moves, #ARGV, 7 do
  offsets[#offsets + 1] = ARGV[i + 1]
  if held[ARGV[i]] == nil then held[ARGV[i]] = redis.call('ZSCORE', KEYS[1] .. ':sheets', ARGV[i]) and true or false end
end
read_people(KEYS[1], offsets)
local replies = redis.call('HLEN', why)
for i = moves, #ARGV, 7 do
  local offset, state, reply, attempts = ARGV[i + 1], ARGV[i + 2], ARGV[i + 4], tonumber(ARGV[i + 5])
  local ok = (held[ARGV[i]] or state == '3') and change(KEYS[1], offset, state, ARGV[i + 3])
  if ok and reply == '' then
    if replies > 0 then replies = replies - redis.call('HDEL', why, offset) end -- it was about the state before
  elseif ok and (replies < tonumber(keep) or redis.call('HEXISTS', why, offset) == 1) then
    replies = replies + redis.call('HSET', why, offset, reply)
  end
  if ok and attempts ~= 0 then note_attempt(KEYS[1], offset, ARGV[i + 6], attempts) end
  changed[#changed + 1] = ok and '1' or '0'
end
write_people(KEYS[1])
changed = table.concat(changed)
return OK
