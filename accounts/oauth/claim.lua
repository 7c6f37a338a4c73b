-- Takes the lock of an owner's token unless another process has it, and reads the record.
-- KEYS[1] oauth:<owner> (string)   KEYS[2] oauth:<owner>:lock (string)
-- ARGV: fence lock_for
--   fence: name of the process   lock_for: lifetime of the lock, ms
-- Answer: OURS record
-- Answer: BUSY record
--   record: empty for none
-- Atomic because the record must be the one at the beginning of the lock. A process whose lock could not be released, since Redis was
-- unreachable, gets it again immediately: it asks for an owner once at a time.
local holder, record = redis.call('GET', KEYS[2]), redis.call('GET', KEYS[1]) or ''
if holder and holder ~= fence then
  return BUSY
end
redis.call('SET', KEYS[2], fence, 'PX', lock_for)
return OURS
