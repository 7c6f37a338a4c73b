-- reopen gives a message that is not being sent a new time and a new task: retry, reschedule, replay.
--
-- KEYS[1] message hash
-- ARGV: id now state fence due attempts max gateway status scheduled urgent envelope account
-- ARGV: quotas partitions addressed keep_addressed event undone
--   state, fence               as the caller read them
--   status, envelope, account  '' if unchanged
--   scheduled                  time of the first attempt
--   quotas, partitions         of a dead letter, as for accept.lua
--   addressed, keep_addressed  of a changed envelope, as for accept.lua
--   urgent                     1: it is tried even while the account is held
--   event                      the replay's; '' for none
--   undone                     cells for rates.lua, which take the failure back: it is counted again if it fails again
-- Answer: OK epoch
-- Answer: GONE
-- Answer: ACTIVE
-- Answer: CHANGED
-- Answer: PURGED
-- Answer: OVER first
--   PURGED  the content is no longer there
--   OVER    as for accept.lua
-- Atomic because two concurrent replays must send once: the second answers CHANGED.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence')
if not m[1] then return GONE end
if m[1] == 'active' then return ACTIVE end
if m[1] ~= state or m[2] ~= fence then return CHANGED end
if redis.call('EXISTS', content_key(id)) == 0 then return PURGED end

local at, to = where(id), 'waiting'
local first = quotas ~= '' and over(quotas, partitions, account ~= '' and account or at.account, tonumber(at.size or 1), '', 1)
if first then return OVER end
if tonumber(due) > tonumber(now) then to = 'scheduled' end
if envelope ~= '' then
  redis.call('SET', envelope_key(id), envelope)
  redis.call('HDEL', KEYS[1], 'v') -- it was about the former recipients
  note_addressed(id, addressed, keep_addressed)
end
if account ~= '' then
  strike(index_key(at.lane, at.state), at, id)
  at.account = account
  enlist(index_key(at.lane, at.state), at, id)
  redis.call('HSET', KEYS[1], 'account', at.account)
end
if at.state == 'failed' then at.weighed = has_quota(quotas, at.account) end
move(id, at, to, due)
redis.call('HSET', KEYS[1], 'state', to, 'due', due, 'attempts', attempts, 'max', max, 'gateway', gateway,
  'scheduled', scheduled, 'weighed', at.weighed and '1' or '')
redis.call('HDEL', KEYS[1], 'reservation', 'held', 'reason')
if urgent == '1' then redis.call('HSET', KEYS[1], 'urgent', '1') end
if status ~= '' then -- a replay: limits count from here
  redis.call('HDEL', KEYS[1], 'lost')
  redis.call('HSET', KEYS[1], 'oldDoubts', redis.call('HGET', KEYS[1], 'doubts') or 0) -- kept, because the message may have been delivered
  redis.call('SET', status_key(id), status)
end
local epoch = wake(id, now)
if event ~= '' then emit(event, 'u', undone) end
return OK
