-- finish records what an attempt came to, with everything that follows from it: state, indexes, recipients, content, counters, events.
--
-- KEYS[1] message hash
-- ARGV 1 id, 2 fence, 3 now, 4 outcome (sent, suppressed, delayed, failed, dropped, released, deferred, held), 5 due, 6 attempts made, 7 attempted (1 or 0),
--      8 status ('' leaves it), 9 what stays in the log ('' for nothing), 10 in doubt (1 or 0), 11 what the attempt before lapsed as, 12 slot,
--      13 reason, 14 what people read of it, for the search index, after the letter t; c: its content tells, and stays; '' for
--      nothing, 15 what others may call the message, for reference keys, in one string, 16 seconds to keep these; then events
--      dropped is a failure whose content goes at once; released gives the message back as if the attempt had not begun; deferred does so
--      for later, because of a limit or of its own gateway's trouble; held is delayed until the account's trouble is over
-- Result {'OK'}, or {'LOST', state} when another attempt has begun, or the message is gone
-- Atomic because an answer recorded without its event, or an event without its answer, would break a promise each.
--
-- A lease that ran out while nobody else began does not make the answer less true, so a waiting message with our fence is finished too.

local id, now, outcome = ARGV[1], tonumber(ARGV[3]), ARGV[4]
local m = redis.call('HMGET', KEYS[1], 'state', 'fence', 'lane', 'created', 'account', 'lease')
if m[2] == ARGV[2] and not m[6] then return {'OK'} end -- the attempt is recorded: this very call has come again, perhaps long after
if m[2] ~= ARGV[2] or (m[1] ~= 'active' and m[1] ~= 'waiting') then return {'LOST', m[1] or 'gone'} end
local at = {state = m[1], lane = m[3], created = m[4], account = m[5]}
local ends = outcome == 'sent' or outcome == 'suppressed' or outcome == 'dropped'
if not ends then redis.call('HDEL', KEYS[1], 'lease') end -- begin set it, and it outlives its end: until here the attempt has not been recorded

if outcome == 'released' or outcome == 'deferred' or outcome == 'held' then
  local to = 'waiting'
  if tonumber(ARGV[5]) > now then to = 'delayed' end
  redis.call('HSET', KEYS[1], 'state', to, 'due', ARGV[5], 'lapsed', ARGV[11], 'doubt', '')
  if ARGV[12] ~= '' then redis.call('HSET', KEYS[1], 'slot', ARGV[12]) end
  if ARGV[13] ~= '' then redis.call('HSET', KEYS[1], 'reason', ARGV[13]) end
  move(id, at, to, ARGV[5])
  if outcome == 'held' then
    redis.call('HSET', KEYS[1], 'held', '1')
    redis.call('ZADD', held_key(at.account), at.created, id) -- the oldest goes first
    redis.call('SADD', prefix .. 'held', at.account)
  end
end

if ARGV[7] == '1' then count(now, at, 'attempts') end
if ARGV[8] ~= '' then redis.call('SET', status_key(id), ARGV[8]) end
if ARGV[10] == '1' then redis.call('HINCRBY', KEYS[1], 'doubts', 1) end
if ends then
  local stays = remember_text(id, ARGV[9], ARGV[14])
  remove(id, at, now, outcome == 'dropped' and 'failed' or outcome, ARGV[9], stays)
elseif outcome == 'delayed' or outcome == 'failed' then
  redis.call('HSET', KEYS[1], 'state', outcome, 'attempts', ARGV[6], 'due', ARGV[5], 'lapsed', '', 'doubt', '')
  if outcome == 'delayed' then move(id, at, 'delayed', ARGV[5]) else move(id, at, 'failed', now) end
end
for name in string.gmatch(ARGV[15] or '', '%S+') do redis.call('SET', prefix .. 'reference:' .. name, id, 'EX', ARGV[16]) end
if outcome == 'sent' or outcome == 'suppressed' then count(now, at, outcome) end
if outcome == 'failed' or outcome == 'dropped' then count(now, at, 'failed') end
emit(17)
return {'OK'}
