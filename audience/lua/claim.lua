-- Gives an address of the index to an ordinal.
-- KEYS[1] subscriber-index:<bucket>
-- ARGV: field before after
--   before: the ordinal that has it now; empty: none
--   after: the ordinal that gets it; empty: none
-- Result: the ordinal that has it after this; empty: none.
-- Atomic because two new subscribers of one address must get one ordinal.
local has = redis.call('HGET', KEYS[1], field) or ''
if has ~= before and has ~= after then return has end
if after == '' then
  redis.call('HDEL', KEYS[1], field)
else
  redis.call('HSET', KEYS[1], field, after)
end
return after
