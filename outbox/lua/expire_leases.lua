-- expire_leases ends leases that ran out: their holders are dead, stopped, or cut off. The messages wait again under a new
-- epoch. The record lists the lost attempts that are in no log yet, each with its beginning, and whether it had reached
-- its final dot. They count as attempts, and the message may have one more for each.
--
-- KEYS[1] any key of the partition
-- ARGV: now most
-- Rows: id lane epoch due
--   the tasks to enqueue
-- Atomic per message: the holder may renew or finish at this moment.

local woken = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'leases', '-inf', now, 'LIMIT', 0, most)) do
  local id = string.match(member, '^%w+')
  local key = message_key(id)
  local m = redis.call('HMGET', key, 'state', 'fence', 'doubt', 'lapsed', 'began')
  if m[1] == 'active' then
    local at = where(id)
    local lapsed, counter = 'lost', 'lost'
    if m[3] and m[3] == m[2] then lapsed, counter = 'doubt', 'doubts' end
    redis.call('HSET', key, 'state', 'waiting', 'lapsed', (m[4] or '') .. lapsed .. '@' .. (m[5] or '0') .. ' ', 'due', now)
    for _, field in ipairs({counter, 'attempts', 'max'}) do redis.call('HINCRBY', key, field, 1) end
    move(id, at, 'waiting')
    local lane, epoch, due = at.lane, wake(id, now), now
    woken[#woken + 1] = ROW
  else
    redis.call('ZREM', prefix .. 'leases', member)
  end
end
return woken
