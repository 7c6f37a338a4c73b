-- finish writes down what came of an attempt, and since when the endpoint has been failing.
--
-- KEYS[1] delivery hash
-- ARGV 1 endpoint, 2 delivery, 3 attempt (0: whichever), 4 status (delivered, failed, skipped; pending for another attempt), 5 now,
--      6 status code, 7 latency, 8 answer, 9 error, 10 time of the next attempt, 11 ms to keep it once over, 12 how many to keep,
--      13 URL of the endpoint (empty: says nothing about the endpoint)
-- Result {1 or 0: written or not, since when the endpoint has been failing at this URL, or ''}
-- Atomic because the log must not lose a delivery between pending and over, and because of the fence: an attempt that was overtaken
-- by a later one (its worker was thought dead) is not written, unless it brings the news that the event has arrived.

local endpoint, id, status, now = ARGV[1], ARGV[2], ARGV[4], tonumber(ARGV[5])

local function failing()
  if ARGV[13] == '' then return '' end
  if status == 'delivered' then
    redis.call('HDEL', hook .. 'failing', endpoint)
    return ''
  end
  local since, url = string.match(redis.call('HGET', hook .. 'failing', endpoint) or '', '^(%d+) (.*)$')
  if url == ARGV[13] then return since end
  redis.call('HSET', hook .. 'failing', endpoint, ARGV[5] .. ' ' .. ARGV[13])
  return ARGV[5]
end

local since = failing()
local d = redis.call('HMGET', KEYS[1], 'status', 'attempts')
if not d[1] then
  redis.call('ZREM', hook .. 'due', member(endpoint, id))
  return {0, since}
end
local fenced = d[1] ~= 'pending' or (ARGV[3] ~= '0' and d[2] ~= ARGV[3])
if d[1] == 'delivered' or (fenced and status ~= 'delivered') then return {0, since} end

redis.call('HSET', KEYS[1], 'status', status, 'code', ARGV[6], 'latency', ARGV[7], 'response', ARGV[8], 'error', ARGV[9])
if status == 'pending' then
  redis.call('HSET', KEYS[1], 'next', ARGV[10])
  redis.call('ZADD', hook .. 'due', ARGV[10], member(endpoint, id))
  return {1, since}
end
redis.call('HDEL', KEYS[1], 'next', 'slot')
redis.call('PEXPIRE', KEYS[1], ARGV[11])
redis.call('ZREM', hook .. 'due', member(endpoint, id))
redis.call('ZADD', done_key(endpoint), now, id)
-- The log outlives what it lists: the record that has just ended and, where others are pending, those.
local ms = tonumber(ARGV[11])
if redis.call('ZCARD', log_key(endpoint)) > redis.call('ZCARD', done_key(endpoint)) then
  ms = math.max(ms, redis.call('PTTL', log_key(endpoint)))
end
keep(endpoint, ms)
trim(endpoint, tonumber(ARGV[12]), now - tonumber(ARGV[11]))
return {1, since}
