-- claim makes a process the indexer of the search index, or renews its claim.
--
-- KEYS[1] the claim: holder, a space, place
-- KEYS[2] the name of the index kept last
-- KEYS[3] since when changes are missing: always, if this index is not the one kept last
-- ARGV: holder place lifetime index take_over
--   place      the process's, for logs
--   lifetime   milliseconds
--   take_over  1: also replace a claim of the same place; that process is dead, because this one has its lock
-- Result 1 held, 0 another process keeps it
-- Atomic because two processes that both find no claim would both keep it.

local claim = redis.call('GET', KEYS[1])
if claim then
  local current, at = string.match(claim, '^([^ ]*) (.*)$')
  if current ~= holder and not (take_over == '1' and at == place) then
    return 0
  end
end
redis.call('SET', KEYS[1], holder .. ' ' .. place, 'PX', lifetime)
if redis.call('GET', KEYS[2]) ~= index then
  redis.call('SET', KEYS[2], index)
  redis.call('SET', KEYS[3], '1')
end
return 1
