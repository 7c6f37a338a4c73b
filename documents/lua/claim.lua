-- claim.lua makes a process the keeper of the search index, or keeps it so. Looking and writing must be one step, or two processes keep it.
--
-- KEYS[1]  the claim: holder, a space, place
-- KEYS[2]  the name of the index kept last
-- KEYS[3]  since when changes are missing: always, where this index was not the one kept last
-- ARGV[1]  holder
-- ARGV[2]  place, for people
-- ARGV[3]  how long the claim holds, ms
-- ARGV[4]  name of the index
-- ARGV[5]  1: take over a claim of the same place, too: its process has died, for this one has its lock
-- Returns 0: somebody else keeps it; 1: held.
local claim = redis.call('GET', KEYS[1])
if claim then
  local at = string.find(claim, ' ', 1, true)
  local holder, place = string.sub(claim, 1, at - 1), string.sub(claim, at + 1)
  if holder ~= ARGV[1] and not (ARGV[5] == '1' and place == ARGV[2]) then
    return 0
  end
end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
if redis.call('GET', KEYS[2]) ~= ARGV[4] then
  redis.call('SET', KEYS[2], ARGV[4])
  redis.call('SET', KEYS[3], '1')
end
return 1
