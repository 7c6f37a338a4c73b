-- erase deletes a delivery, or replaces its content.
--
-- KEYS[1] delivery hash
-- ARGV: endpoint id event response failure
--   event  the new event; empty if the delivery is deleted, and its task finds nothing to do
-- The history of attempts is deleted with either.
-- Result 1 if there was one
-- Atomic because record and index go together.

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if event == '' then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', hook .. 'due', member(endpoint, id))
  redis.call('ZREM', done_key(endpoint), id)
  redis.call('ZREM', log_key(endpoint), id)
  return 1
end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 4) == 'try:' then redis.call('HDEL', KEYS[1], field) end
end
redis.call('HSET', KEYS[1], 'event', event)
if redis.call('HEXISTS', KEYS[1], 'response') == 1 then
  redis.call('HSET', KEYS[1], 'response', response, 'error', failure)
end
return 1
