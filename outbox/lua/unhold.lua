-- unhold wakes messages that are held, the oldest first. In a line for a relay one of the account's backlog follows.
--
-- KEYS[1] any key of the partition
-- ARGV: hold now most contended due
--   hold       what they wait for
--   contended  1: other accounts have lines for the relay, so the next of the backlog joins this one, until due
-- Rows: id lane epoch due
--   the tasks to enqueue
-- Atomic per message: an operator may cancel it at this moment.

local key, limit = held_key(hold), tonumber(most)
local woken = {}
for _, id in ipairs(redis.call('ZRANGE', key, 0, 999)) do
  if #woken >= limit then break end
  redis.call('ZREM', key, id)
  local m = redis.call('HMGET', message_key(id), 'held', 'state', 'reason')
  if m[1] == hold and m[2] == 'delayed' then -- else it is gone or was changed
    local at = where(id)
    redis.call('HDEL', message_key(id), 'held', 'reason')
    redis.call('HSET', message_key(id), 'state', 'waiting', 'due', now)
    if string.find(hold, ' ', 1, true) then redis.call('HSET', message_key(id), 'woken', '1') end -- those that come now don't pass it
    move(id, at, 'waiting')
    if contended == '1' then line_up(at, hold, m[3] or '', due) end -- so that each account keeps its turn
    local lane, epoch, due = at.lane, wake(id, now), now
    woken[#woken + 1] = ROW
  end
end
if redis.call('ZCARD', key) == 0 then redis.call('SREM', prefix .. 'held', hold) end
return woken
