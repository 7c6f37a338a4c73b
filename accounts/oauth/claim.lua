-- claim takes the turn to ask for an owner's token, if nobody else has it, and reads the record.
--
-- KEYS[1] record, KEYS[2] lock
-- ARGV 1 the caller's fence, 2 ms that the turn lasts at most
-- Result {1 or 0: ours or not, the record ('' for none)}
-- Atomic because the record must be the one that the turn begins with. A process whose turn could not be given back, since Redis was away,
-- has it again at once: it has one turn for an owner at a time.

local holder = redis.call('GET', KEYS[2])
local ours = 0
if not holder or holder == ARGV[1] then
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
  ours = 1
end
return {ours, redis.call('GET', KEYS[1]) or ''}
