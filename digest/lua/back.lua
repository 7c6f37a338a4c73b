-- back makes a failed run's events wait again. Events that were returned before are dropped, and so are
-- groups of older events if one of them was.
--
-- KEYS[1] run, KEYS[2] recipient, KEYS[3] due, KEYS[4...] lists of the categories, in the order of the snapshots
-- ARGV: member due keep retention most
--   member, due  the entry of due; member '': none
--   most         events of one call
-- Answer: MORE
-- Answer: DONE returned dropped
--   MORE  call it again
-- Atomic because an event must not be in a snapshot and wait as well.
local returned, dropped = tonumber(redis.call('HGET', KEYS[1], 'returned') or '0'), tonumber(redis.call('HGET', KEYS[1], 'dropped') or '0')
local taken, left = string.gsub(KEYS[1], ':digest%-run:', ':digest-taken:', 1), tonumber(most)
if redis.call('EXISTS', KEYS[1]) == 0 then return DONE end -- its recipient was erased
local names = cjson.decode(redis.call('HGET', KEYS[1], 'taken') or '[]')
for i = 4, #KEYS do
  local snapshot, list = taken .. ':' .. (i - 4), KEYS[i]
  while left > 0 do
    local line = redis.call('RPOP', snapshot)
    if not line then break end
    left = left - 1
    if string.sub(line, 1, 2) == '[1' then
      dropped = dropped + 1
    else
      redis.call('LPUSH', list, '[1' .. string.sub(line, 3))
      returned = returned + 1
    end
  end
  if redis.call('LLEN', snapshot) == 0 then
    local older = waits(snapshot)
    if redis.call('HEXISTS', snapshot .. ':older', 'returned') == 1 then
      dropped = dropped + older
    elseif older > 0 then
      merge(snapshot, list)
      returned = returned + older
    end
    drop(snapshot)
  end
  if redis.call('EXISTS', list, list .. ':older') > 0 then
    trim(list, tonumber(keep), tonumber(most))
    remember(list, retention)
    if redis.call('HSETNX', KEYS[2], 'c:' .. names[i - 3], 1) == 1 then redis.call('HINCRBY', KEYS[2], 'categories', 1) end
  end
end
redis.call('HSET', KEYS[1], 'returned', returned, 'dropped', dropped)
if left == 0 then return MORE end
if member ~= '' and returned > 0 then redis.call('ZADD', KEYS[3], 'LT', due, member) end
return DONE
