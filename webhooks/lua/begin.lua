-- begin starts an attempt, or says why there is none to make now.
--
-- KEYS[1] delivery hash
-- ARGV 1 endpoint, 2 delivery, 3 now, 4 requests a second allowed (0: any number), 5 when the attempt is surely over
-- Result {'over'} nothing left to do; {'wait', time} the endpoint's limit: a place is reserved at that time;
--        {'go', attempt, created, event JSON}
-- Atomic because two tasks over the limit must not reserve the same place, and an attempt's number must be its own.
--
-- A delivery that failed for good is opened again: its task comes back only when an operator runs it from the queue dashboard.

local endpoint, id, now, rate = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local d = redis.call('HMGET', KEYS[1], 'status', 'slot')
if d[1] ~= 'pending' and d[1] ~= 'failed' then return {'over'} end

-- A token bucket of one second's worth, kept as the time at which it would be full again (GCRA). Over the limit the next free place is
-- taken and written down, so that the task waits exactly once.
local function reserve()
  if d[2] then
    if tonumber(d[2]) > now then return tonumber(d[2]) end
    redis.call('HDEL', KEYS[1], 'slot')
    return now
  end
  local key, gap = hook .. 'rate:' .. endpoint, 1000 / rate
  local full = math.max(tonumber(redis.call('GET', key) or 0), now)
  redis.call('SET', key, string.format('%.3f', full + gap), 'PX', math.ceil(full + gap - now) + 1000)
  local at = math.ceil(full - (1000 - gap))
  if at > now then redis.call('HSET', KEYS[1], 'slot', at) end
  return at
end

if rate > 0 then
  local at = reserve()
  if at > now then
    redis.call('HSET', KEYS[1], 'next', at)
    redis.call('ZADD', hook .. 'due', at, member(endpoint, id))
    return {'wait', at}
  end
end
if d[1] == 'failed' then
  redis.call('HSET', KEYS[1], 'status', 'pending')
  redis.call('ZREM', done_key(endpoint), id)
end
redis.call('ZADD', hook .. 'due', ARGV[5], member(endpoint, id))
redis.call('HSET', KEYS[1], 'last', now)
redis.call('HDEL', KEYS[1], 'next')
return {'go', redis.call('HINCRBY', KEYS[1], 'attempts', 1), redis.call('HGET', KEYS[1], 'created'), redis.call('HGET', KEYS[1], 'event')}
