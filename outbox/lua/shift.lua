-- shift moves messages that wait for a relay to the line of another relay that serves instead, oldest first.
-- Messages that name their gateway stay.
--
-- KEYS[1] any key of the partition
-- ARGV: hold to reason most
--   hold, to  the lines
--   reason    why they wait, from now on
-- Result how many
-- Atomic per message: it may be woken at this moment.

local from, limit, moved, kept = held_key(hold), tonumber(most), 0, 0
while moved < limit do
  local ids = redis.call('ZRANGE', from, kept, kept + limit - moved - 1)
  if #ids == 0 then break end
  for _, id in ipairs(ids) do
    local m = redis.call('HMGET', message_key(id), 'held', 'gateway')
    if m[1] == hold and m[2] and m[2] ~= '' then
      kept = kept + 1
    else
      if m[1] == hold then -- else it is gone or was changed
        redis.call('ZADD', held_key(to), redis.call('ZSCORE', from, id), id)
        redis.call('HSET', message_key(id), 'held', to, 'reason', reason)
        moved = moved + 1
      end
      redis.call('ZREM', from, id)
    end
  end
end
if moved > 0 then redis.call('SADD', prefix .. 'held', to) end
if redis.call('ZCARD', from) == 0 then redis.call('SREM', prefix .. 'held', hold) end
return moved
