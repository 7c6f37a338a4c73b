-- begin claims a message for one attempt: it takes the lease and hands out the fencing token that every later write must show.
--
-- KEYS[1] message hash   KEYS[2] version of the suppressions (absent where there is none)
-- ARGV 1 id, 2 now, 3 lease until, 4 octets of content beyond which it is left to be fetched in pieces: Lua would copy all of it. The
--      personalization of a shared content is always returned
-- Result {'GO', fence, attempts made, attempts allowed, gateway, lapsed, began, lost, doubts, scheduled, envelope, content ('': to be fetched), status, lane, slot,
--         urgent, created, forgiven, shared content, 1 if nobody was suppressed since accept.lua found nobody in it who is}
--        {'GONE'} ended or never there, {'FAILED'} a dead letter, {'EARLY', due}, {'HELD', lease until}
-- Atomic because two workers that both read "waiting" would both send. An active message is never taken here, even with its lease run
-- out: only lapse.lua ends a lease, so that there is one place that judges a lost attempt.

local id, now = ARGV[1], tonumber(ARGV[2])
local m = redis.call('HMGET', KEYS[1], 'state', 'due', 'lease', 'attempts', 'max', 'gateway', 'lapsed', 'began', 'lost', 'doubts', 'scheduled',
  'lane', 'created', 'fence', 'slot', 'urgent', 'reason', 'account', 'forgiven', 'shared', 'v')
if not m[1] then return {'GONE'} end
if m[1] == 'failed' then return {'FAILED'} end
if m[1] == 'active' then return {'HELD', m[3]} end
if tonumber(m[2]) > now then return {'EARLY', m[2]} end

local fence = tostring(tonumber(m[14]) + 1)
move(id, {lane = m[12], state = m[1], created = m[13], account = m[18]}, 'active', ARGV[3])
redis.call('ZREM', prefix .. 'unqueued', id)
redis.call('HSET', KEYS[1], 'state', 'active', 'fence', fence, 'lease', ARGV[3], 'began', ARGV[2], 'doubt', '')
if m[15] or m[16] or m[17] then redis.call('HDEL', KEYS[1], 'slot', 'urgent', 'reason', 'held') end
local content = content_key(id)
content = (m[20] or redis.call('STRLEN', content) <= tonumber(ARGV[4])) and redis.call('GET', content) or ''
return {'GO', fence, m[4] or '0', m[5], m[6] or '', m[7] or '', m[8] or '0', m[9] or '0', m[10] or '0', m[11],
  redis.call('GET', envelope_key(id)) or '', content, redis.call('GET', status_key(id)) or '', m[12], m[15] or '', m[16] or '', m[13], m[19] or '0',
  m[20] or '', m[21] and KEYS[2] and redis.call('GET', KEYS[2]) == m[21] and '1' or ''}
