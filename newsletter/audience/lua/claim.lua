-- Gives addresses of the index to ordinals.
-- KEYS: subscriber-index:<bucket> of each address, all of one prefix
-- ARGV: claims...
--   claims: of each address its field, the ordinal that has it now (empty: none), and the one that gets it (empty: none)
-- Result: for each address the ordinal that has it after this, or empty.
-- Atomic because two new subscribers of one address must get one ordinal.
local results = {}
for i = 1, #KEYS do
  local field, before, after = unpack(ARGV, claims + 3 * (i - 1), claims + 3 * i - 1)
  local has = redis.call('HGET', KEYS[i], field) or ''
  if has == before or has == after then
    if after == '' then
      redis.call('HDEL', KEYS[i], field)
    else
      redis.call('HSET', KEYS[i], field, after)
    end
    has = after
  end
  results[i] = has
end
return results
