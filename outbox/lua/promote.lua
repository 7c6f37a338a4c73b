-- promote makes delayed messages waiting once they are due. It changes what lists and counts show; the tasks are
-- already in the queue.
--
-- KEYS[1] any key of the partition
-- ARGV: now most
-- Result how many
-- Atomic per message: a worker may begin it at this moment.

local ids = redis.call('ZRANGEBYSCORE', prefix .. 'due', '-inf', now, 'LIMIT', 0, most)
for _, id in ipairs(ids) do
  local at = where(id)
  if at.state == 'delayed' then
    move(id, at, 'waiting')
    redis.call('HSET', message_key(id), 'state', 'waiting')
  else
    redis.call('ZREM', prefix .. 'due', id)
  end
end
return #ids
