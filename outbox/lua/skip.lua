-- skip enters a message in the log that is not even queued, because none of its recipients may be mailed.
--
-- KEYS[1] message hash, which is never written
-- ARGV 1 id, 2 now, 3 lane, 4 account, 5 what stays in the log ('' for nothing), then events
-- Result {'OK'}
-- Atomic because an entry without its event, or an event without its entry, would contradict each other.

local id, now, at = ARGV[1], tonumber(ARGV[2]), {lane = ARGV[3], account = ARGV[4], created = ARGV[2]}
if redis.call('EXISTS', prefix .. 'ended:' .. id) == 1 then return {'OK'} end -- this very call has come again
enter(id, at, now, 'suppressed', ARGV[5])
count(now, at, 'skipped')
emit(6)
return {'OK'}
