-- Notes what an attempt through an account met, and writes the event of a new trouble.
-- KEYS[1] account:<id> (hash)   KEYS[2] account:<id>:state (hash)   KEYS[3] accounts:version   KEYS[4] events (stream)
-- KEYS[5] accounts:troubled (sorted set)
-- ARGV[1] 1 if the account also comes from the configuration   ARGV[2] what it met: connected, error or trouble
-- ARGV[3] error, empty for none   ARGV[4] now, ms since 1970   ARGV[5] kind of trouble   ARGV[6] the event of it, a line of JSON
-- ARGV[7] 1 if the account's mail waits while there is trouble   ARGV[8] wait until the first check, ms
-- ARGV[9] for how long after trouble a success may come from a login before it, ms
-- ARGV[10] which configured account this is about, empty for a stored one   ARGV[11] the account
-- Result: gone, noted, ignored (a success that proves nothing yet), trouble (a new one; the event is written), or over (its mail is
-- held no longer).
-- Atomic so that one trouble makes one event, whatever number of processes meet it, and that the end of an attempt that outlived its
-- account leaves nothing behind.
if ARGV[1] ~= '1' and redis.call('EXISTS', KEYS[1]) == 0 then
  return 'gone'
end
local now, hold = tonumber(ARGV[4]), ARGV[7] == '1'
local had = redis.call('HMGET', KEYS[2], 'state', 'kinds', 'seen', 'seenAt', 'checking')
local held, kinds, checking = had[1] == 'held', had[2] or '', had[5]
local recent = now - tonumber(had[4] or '0') < tonumber(ARGV[9])

local function release()
  redis.call('HDEL', KEYS[2], 'since', 'next', 'step', 'checking')
  redis.call('INCR', KEYS[3])
end

if ARGV[2] == 'connected' then
  if held and hold and recent and not checking then
    return 'ignored'
  end
  redis.call('HSET', KEYS[2], 'state', 'connected')
  redis.call('HDEL', KEYS[2], 'lastError', 'lastErrorAt', 'kinds')
  if held then
    release()
    return 'over'
  end
  return 'noted'
end

if ARGV[2] == 'error' and held and hold then
  return 'noted' -- what it is held for is the more important news
end
redis.call('HSET', KEYS[2], 'lastError', ARGV[3], 'lastErrorAt', ARGV[4], 'of', ARGV[10])
if held and not hold then
  release()
end
if ARGV[2] == 'error' then
  redis.call('HSET', KEYS[2], 'state', 'error')
  return 'noted'
end

local kind = ARGV[5]
local known = string.find(' ' .. kinds .. ' ', ' ' .. kind .. ' ', 1, true)
if not known then
  redis.call('HSET', KEYS[2], 'kinds', kinds == '' and kind or kinds .. ' ' .. kind)
end
redis.call('HSET', KEYS[2], 'state', hold and 'held' or 'error', 'seen', kind, 'seenAt', ARGV[4])
redis.call('HDEL', KEYS[2], 'checking')
redis.call('ZADD', KEYS[5], 'NX', ARGV[4], ARGV[11]) -- troubled.lua takes it out again
if hold and not held then
  redis.call('HSET', KEYS[2], 'since', ARGV[4], 'next', now + tonumber(ARGV[8]), 'step', 1)
  redis.call('INCR', KEYS[3])
end
if known or had[3] == kind and recent then
  return 'noted'
end
redis.call('XADD', KEYS[4], '*', 'e', ARGV[6])
return 'trouble'
