-- begin starts an attempt, unless none must be made now.
--
-- KEYS[1] delivery hash
-- ARGV: endpoint id now rate over_at
--   rate     requests a second allowed; 0 for any number
--   over_at  when the attempt is surely over
-- Answer: GO attempt created event
-- Answer: WAIT at
-- Answer: OVER
--   WAIT  the endpoint is at its limit: a reservation for this delivery begins at that time
--   OVER  nothing is left to do
-- Atomic because two tasks over the limit must not get the same reservation, and an attempt's number must be its own.
--
-- A delivery that failed permanently is opened again: its task comes back only when an operator runs it from
-- the queue dashboard.

now, rate = tonumber(now), tonumber(rate)
local d = redis.call('HMGET', KEYS[1], 'status', 'reservation')
local status, reserved = d[1], d[2]
if status ~= 'pending' and status ~= 'failed' then return OVER end

-- A token bucket of one second's worth, kept as the time at which it would be full again (GCRA). Over the limit the next free time is
-- reserved and written down, so that the task waits exactly once.
local function reserve()
  if reserved then
    if tonumber(reserved) > now then return tonumber(reserved) end
    redis.call('HDEL', KEYS[1], 'reservation')
    return now
  end
  local key, gap = hook .. 'rate:' .. endpoint, 1000 / rate
  local full = math.max(tonumber(redis.call('GET', key) or 0), now)
  redis.call('SET', key, string.format('%.3f', full + gap), 'PX', math.ceil(full + gap - now) + 1000)
  local at = math.ceil(full - (1000 - gap))
  if at > now then redis.call('HSET', KEYS[1], 'reservation', at) end
  return at
end

if rate > 0 then
  local at = reserve()
  if at > now then
    redis.call('HSET', KEYS[1], 'next', at)
    redis.call('ZADD', hook .. 'due', at, member(endpoint, id))
    return WAIT
  end
end
if status == 'failed' then
  redis.call('HSET', KEYS[1], 'status', 'pending')
  redis.call('ZREM', done_key(endpoint), id)
end
redis.call('ZADD', hook .. 'due', over_at, member(endpoint, id))
redis.call('HSET', KEYS[1], 'last', now)
redis.call('HDEL', KEYS[1], 'next')
local attempt = redis.call('HINCRBY', KEYS[1], 'attempts', 1)
local created, event = redis.call('HGET', KEYS[1], 'created'), redis.call('HGET', KEYS[1], 'event')
return GO
