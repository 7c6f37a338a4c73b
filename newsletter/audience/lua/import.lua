-- Stores the progress of an import, and emits the event of its end.
-- KEYS[1] subscriber-import:<account>:<id>, KEYS[2] events
-- ARGV: before after expiry event
--   before: what must be there now; empty for nothing
--   expiry: seconds
--   event: '': none
-- Result: 1 if it is stored, or 0 if there is something else.
-- Atomic because one of several requests with the same id may run, and a stopped import must not be
-- overwritten;
-- and because a crash must not keep the event back.
local has = redis.call('GET', KEYS[1]) or ''
if has ~= before and has ~= after then return 0 end
redis.call('SET', KEYS[1], after, 'EX', expiry)
if event ~= '' and has ~= after then redis.call('XADD', KEYS[2], '*', 'e', event) end
return 1
