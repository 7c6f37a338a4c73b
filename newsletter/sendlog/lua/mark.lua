-- mark notes that the final dots to people are about to be written. Without it a dot must not be written.
--
-- KEYS[1] log, KEYS[2] gate, KEYS[3] version of the suppressions (absent: they were asked directly before)
-- ARGV: marks...
--   marks   sheet, offset, gate as it was when the sheet was taken, and version, in turns
-- Rows: word remaining
--   word        GO, CLOSED (the gate was shut since, though it may be open again), LOST (the sheet is no longer the
--               caller's, or the person has a result) or CHANGED (somebody was suppressed since the version was read:
--               ask again)
--   remaining   milliseconds of the lease
-- Atomic because a gate that is closed, or a lease that ends, in between would not stop the mail.
local gate, version = redis.call('GET', KEYS[2]), KEYS[3] and (redis.call('GET', KEYS[3]) or '')
local now, leases, offsets = redis.call('TIME'), {}, {}
for i = marks, #ARGV, 4 do
  offsets[#offsets + 1] = ARGV[i + 1]
  leases[ARGV[i]] = leases[ARGV[i]] or redis.call('ZSCORE', KEYS[1] .. ':sheets', ARGV[i]) or 0
end
read_people(KEYS[1], offsets)
local rows = {}
for i = marks, #ARGV, 4 do
  local offset, word = ARGV[i + 1], 'GO'
  local remaining = leases[ARGV[i]] - now[1] * 1000 - math.floor(now[2] / 1000)
  if remaining <= 0 then word = 'LOST'
  elseif gate ~= ARGV[i + 2] then word = 'CLOSED'
  elseif version and version ~= ARGV[i + 3] then word = 'CHANGED'
  elseif not change(KEYS[1], offset, 2, 'bc') then word = 'LOST' end -- 2: the client repeats a call whose answer it lost
  remaining = string.format('%.0f', math.max(0, remaining))
  rows[#rows + 1] = ROW
end
write_people(KEYS[1])
return rows
