-- Functions that the scripts of webhooks share.
--
-- KEYS[1] of each script is any key of the partition; the other keys are made from its prefix. A Redis Cluster allows that, because the
-- tag in braces puts all keys of a partition in one slot. Times are Unix milliseconds, given by the caller.

local prefix = string.match(KEYS[1], '^(.-})') .. ':'
local hook = prefix .. 'webhook:'

local function delivery_key(endpoint, id) return hook .. 'delivery:' .. endpoint .. ':' .. id end
local function log_key(endpoint) return hook .. 'log:' .. endpoint end   -- all deliveries by creation
local function done_key(endpoint) return hook .. 'done:' .. endpoint end -- those that are over, by their end
local function member(endpoint, id) return id .. ' ' .. endpoint end     -- in the due set; an id holds no space

-- trim deletes finished deliveries: the oldest beyond the cap, and any that ended before the cutoff. It
-- deletes a hundred at most, so that a changed limit is applied over many calls instead of stalling Redis in
-- one.
local function trim(endpoint, cap, cutoff)
  local over = redis.call('ZCARD', done_key(endpoint)) - cap
  local old
  if over > 0 then
    old = redis.call('ZRANGE', done_key(endpoint), 0, math.min(over, 100) - 1)
  else
    old = redis.call('ZRANGEBYSCORE', done_key(endpoint), '-inf', cutoff, 'LIMIT', 0, 100)
  end
  for _, id in ipairs(old) do
    redis.call('DEL', delivery_key(endpoint, id))
    redis.call('ZREM', done_key(endpoint), id)
    redis.call('ZREM', log_key(endpoint), id)
  end
  return #old
end

-- keep makes the log of an endpoint live as long as its youngest delivery may. It skips a missing key: call it after making one of the two.
local function keep(endpoint, ms)
  redis.call('PEXPIRE', log_key(endpoint), ms)
  redis.call('PEXPIRE', done_key(endpoint), ms)
end
