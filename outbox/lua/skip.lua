-- skip enters a message in the log that is not queued, because all its recipients are suppressed.
--
-- KEYS[1] message hash, which is never written
-- ARGV: id now lane account record events...
--   record  for the log; '': there is no log
-- Result 1
-- Atomic because an entry without its event, or an event without its entry, would contradict each other.

local at = {lane = lane, account = account, created = now}
if redis.call('EXISTS', prefix .. 'ended:' .. id) == 1 then return 1 end -- this call is a repetition
enter(id, at, now, 'suppressed', record)
count(now, at, 'skipped')
emit_all(events)
return 1
