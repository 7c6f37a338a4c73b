-- Stores the result of an attempt through an account, and writes the event of a new refusal.
-- KEYS[1] account:<id> (hash)   KEYS[2] account:<id>:state (hash)   KEYS[3] accounts:version   KEYS[4] events (stream)
-- KEYS[5] accounts:troubled (sorted set)
-- ARGV: id result error_text code reply command now kind event hold first_check settling configured
--   result: connected, error or trouble   error_text: empty without an error   now: ms since 1970
--   code, reply, command: of the error; empty, 0 and empty if there is none
--   kind: of the trouble   event: of the trouble, a line of JSON
--   hold: 1 if the account's mail waits while there is trouble   first_check: wait until the first check, ms
--   settling: time after a trouble in which a success may come from an earlier login, ms
--   configured: fingerprint of the account in the configuration; empty for a stored account
-- Result: gone, noted, ignored (a success that proves nothing yet), trouble (a new refusal; the event is
-- written), or over (the hold has ended).
-- Atomic so that a refused account makes one event, whatever number of processes meet it, and an attempt that
-- outlived its account leaves nothing behind.
if configured == '' and redis.call('EXISTS', KEYS[1]) == 0 then
  return 'gone'
end
hold = hold == '1'
local had = redis.call('HMGET', KEYS[2], 'state', 'kinds', 'seen', 'seenAt', 'checking')
local held, kinds, checking = had[1] == 'held', had[2] or '', had[5]
local recent = now - tonumber(had[4] or '0') < tonumber(settling)

local function release()
  redis.call('HDEL', KEYS[2], 'since', 'next', 'step', 'checking')
  redis.call('INCR', KEYS[3])
end

if result == 'connected' then
  if held and hold and recent and not checking then
    return 'ignored'
  end
  redis.call('HSET', KEYS[2], 'state', 'connected', 'connectedAt', now)
  redis.call('HDEL', KEYS[2], 'lastError', 'lastErrorAt', 'code', 'reply', 'command', 'kinds')
  if held then
    release()
    return 'over'
  end
  return 'noted'
end

if result == 'error' and held and hold then
  return 'noted' -- the trouble that it is held for is more important
end
redis.call('HSET', KEYS[2], 'lastError', error_text, 'lastErrorAt', now, 'code', code, 'reply', reply, 'command', command,
  'of', configured)
if held and not hold then
  release()
end
if result == 'error' then
  redis.call('HSET', KEYS[2], 'state', 'error')
  return 'noted'
end

local known = string.find(' ' .. kinds .. ' ', ' ' .. kind .. ' ', 1, true)
if not known then
  redis.call('HSET', KEYS[2], 'kinds', kinds == '' and kind or kinds .. ' ' .. kind)
end
redis.call('HSET', KEYS[2], 'state', hold and 'held' or 'error', 'seen', kind, 'seenAt', now)
redis.call('HDEL', KEYS[2], 'checking')
redis.call('ZADD', KEYS[5], 'NX', now, id) -- troubled.lua removes it
if hold and not held then
  redis.call('HSET', KEYS[2], 'since', now, 'next', now + tonumber(first_check), 'step', 1)
  redis.call('INCR', KEYS[3])
end
if known or had[3] == kind and recent then
  return 'noted'
end
redis.call('XADD', KEYS[4], '*', 'e', event)
return 'trouble'
