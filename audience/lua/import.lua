-- Stores the progress of an import.
-- KEYS[1] subscriber-import:<account>:<id>
-- ARGV: before after expiry
--   before: what must be there now; empty: nothing
--   expiry: seconds
-- Result: 1: it is stored. 0: there is something else.
-- Atomic because one of several requests with the same id may run, and who stops an import must not be overwritten.
local has = redis.call('GET', KEYS[1]) or ''
if has ~= before and has ~= after then return 0 end
redis.call('SET', KEYS[1], after, 'EX', expiry)
return 1
