-- promote makes scheduled and delayed messages waiting once they are due. It changes what lists and counts
-- show; the tasks are already in the queue. Messages beyond their account's window join its backlog.
--
-- KEYS[1] any key of the partition
-- ARGV: now most window
-- Result how many
-- Atomic per message: a worker may begin it at this moment.

local ids = redis.call('ZRANGEBYSCORE', prefix .. 'due', '-inf', now, 'LIMIT', 0, most)
for _, id in ipairs(ids) do
  local at = where(id)
  if at.state == 'delayed' or at.state == 'scheduled' then
    local backlog = redis.call('ZCARD', backlog_key(at))
    local full = is_full(at, under_way(at, backlog), window)
    move(id, at, 'waiting')
    redis.call('HSET', message_key(id), 'state', 'waiting')
    if full then
      redis.call('HSET', message_key(id), 'putOff', redis.call('HGET', message_key(id), 'epoch'))
      put_off(at, id, backlog)
    end
  else
    redis.call('ZREM', prefix .. 'due', id)
  end
end
return #ids
