-- finish records the result of an attempt, and since when the endpoint has been failing.
--
-- KEYS[1] delivery hash
-- ARGV: endpoint id attempt status now code latency response failure next keep_for keep_most url day hour try tries
--   attempt    0 for any
--   status     delivered, failed, skipped; pending: another attempt will be made at next
--   code       status code of the response; latency in milliseconds
--   keep_for   milliseconds to keep a delivery that has ended; keep_most: how many
--   url        the endpoint's; empty if the attempt does not count for its health, and in no hour
--   day        today in UTC, as 2026-11-24; hour: 0 to 23
--   try        the attempt as JSON, for the delivery's history; empty if the last answer says it all
--   tries      how many attempts the history has
-- Result since when the endpoint has been failing at this URL, or empty if it is not
-- Atomic because the log must not lose a delivery between pending and over. The fence also requires it: an
-- attempt that was overtaken by a later one (its worker was thought dead) is not written, unless the event
-- was delivered by it.

local function failing()
  if url == '' then return '' end
  if status == 'delivered' then
    redis.call('HDEL', hook .. 'failing', endpoint)
    return ''
  end
  local since, failed_url = string.match(redis.call('HGET', hook .. 'failing', endpoint) or '', '^(%d+) %d+ (.*)$')
  if failed_url ~= url then since = now end
  redis.call('HSET', hook .. 'failing', endpoint, since .. ' ' .. now .. ' ' .. url)
  return since
end

-- count adds the attempt to its hour. The counters of a day are one key, small enough to be stored as a list.
local function count()
  if url == '' then return end
  local key = hook .. 'hours:' .. endpoint .. ':' .. day
  local what = status == 'pending' and 'retried' or status
  redis.call('HINCRBY', key, hour .. ':' .. what, 1)
  redis.call('HINCRBY', key, hour .. ':ms', latency)
  if tonumber(latency) > tonumber(redis.call('HGET', key, hour .. ':slowest') or 0) then
    redis.call('HSET', key, hour .. ':slowest', latency)
  end
  redis.call('EXPIRE', key, 31 * 86400)
end

local since = failing()
local d = redis.call('HMGET', KEYS[1], 'status', 'attempts')
local before, attempts = d[1], d[2]
if not before then
  redis.call('ZREM', hook .. 'due', member(endpoint, id))
  return since
end
local fenced = before ~= 'pending' or (attempt ~= '0' and attempts ~= attempt)
if before == 'delivered' or (fenced and status ~= 'delivered') then return since end

count()
if try ~= '' then
  redis.call('HSET', KEYS[1], 'try:' .. attempt, try)
  redis.call('HDEL', KEYS[1], 'try:' .. (tonumber(attempt) - tonumber(tries)))
end
redis.call('HSET', KEYS[1], 'status', status, 'code', code, 'latency', latency, 'response', response, 'error', failure)
if status == 'pending' then
  redis.call('HSET', KEYS[1], 'next', next)
  redis.call('ZADD', hook .. 'due', next, member(endpoint, id))
  return since
end
redis.call('HDEL', KEYS[1], 'next', 'reservation')
redis.call('PEXPIRE', KEYS[1], keep_for)
redis.call('ZREM', hook .. 'due', member(endpoint, id))
redis.call('ZADD', done_key(endpoint), now, id)
-- The log outlives its entries: the record that has just ended and, if others are pending, their records.
local ms = tonumber(keep_for)
if redis.call('ZCARD', log_key(endpoint)) > redis.call('ZCARD', done_key(endpoint)) then
  ms = math.max(ms, redis.call('PTTL', log_key(endpoint)))
end
keep(endpoint, ms)
trim(endpoint, tonumber(keep_most), tonumber(now) - tonumber(keep_for))
return since
