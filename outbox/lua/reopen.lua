-- reopen gives a message that is not being sent a new time, and so a new task: retry now, reschedule, and replay of a dead letter.
--
-- KEYS[1] message hash
-- ARGV 1 id, 2 now, 3 state and 4 fence the caller read, 5 due, 6 attempts made, 7 attempts allowed, 8 gateway, 9 status ('' leaves it), 10 when the
--      first attempt was wanted, 11 urgent: 1 to try even while the account is held, 12 envelope ('' leaves it), 13 account
--      ('' leaves it), then events
-- Result {'OK', epoch}, {'GONE'}, {'ACTIVE'}, {'CHANGED'}, or {'PURGED'} when the content is no longer there
-- Atomic because two replays at once must send once: the second one finds the state changed.

local id, now, due = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[5])
local m = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not m[1] then return {'GONE'} end
if m[1] == 'active' then return {'ACTIVE'} end
if m[1] ~= ARGV[3] or m[2] ~= ARGV[4] then return {'CHANGED'} end
if redis.call('EXISTS', content_key(id)) == 0 then return {'PURGED'} end

local at, to = where(id), 'waiting'
if due > now then to = 'delayed' end
if ARGV[12] ~= '' then
  redis.call('SET', envelope_key(id), ARGV[12])
  redis.call('HDEL', KEYS[1], 'v') -- that was about others than it is for now
end
if ARGV[13] ~= '' then
  strike(index_key(at.lane, at.state), at, id)
  at.account = ARGV[13]
  enlist(index_key(at.lane, at.state), at, id)
  redis.call('HSET', KEYS[1], 'account', at.account)
end
move(id, at, to, due)
redis.call('HSET', KEYS[1], 'state', to, 'due', due, 'attempts', ARGV[6], 'max', ARGV[7], 'gateway', ARGV[8],
  'scheduled', ARGV[10])
redis.call('HDEL', KEYS[1], 'slot', 'held', 'reason')
if ARGV[11] == '1' then redis.call('HSET', KEYS[1], 'urgent', '1') end
if ARGV[9] ~= '' then -- a replay: what may be tried counts anew
  redis.call('HDEL', KEYS[1], 'lost')
  redis.call('HSET', KEYS[1], 'forgiven', redis.call('HGET', KEYS[1], 'doubts') or 0) -- not forgotten: the message may be there
  redis.call('SET', status_key(id), ARGV[9])
end
local epoch = wake(id, now)
emit(14)
return {'OK', epoch}
