-- finish records the result of an attempt: state, indexes, recipients, content, counters, events.
--
-- KEYS[1] message hash, then the keys of asynq's acknowledgement
-- ARGV: id fence now outcome due attempts attempted status record in_doubt lapsed reservation reason hold text references
-- ARGV: keep_key window line contended line_due keep_content dialogue_of dialogue
-- ARGV: tasks task_prefix task_head task_tail task_now acks events...
--   outcome     sent, suppressed, delayed, failed; dropped: failed, and the content is deleted; released: as if the
--               attempt had not begun; deferred: the same, but later, because of a limit or its own gateway;
--               held: delayed until what it waits for is there (unhold.lua)
--   attempted   1: it counts as an attempt
--   status      '' if unchanged
--   record      for the log; '' if there is no log
--   hold        name of what a held message waits for
--   line        the line of the account's messages that wait for this relay: they go before those of the backlog
--   contended   1: other accounts have lines for it, so the next of the backlog joins the line, until line_due
--   lapsed      the lost attempts that are in no log yet, see expire_leases.lua
--   text        text for the search index, after the letter t; c: the content stays for it; '' for none
--   references  reference keys, separated by spaces: a hash, its value, and the seconds that it is kept
--   dialogue    SMTP dialogue of the attempt, whose last number in the log is dialogue_of; '' if none is kept
--   keep_key    seconds for which the idempotency key of a message that ends is kept
--   keep_content  seconds for which the content of a message that was sent is kept; '' if it is deleted
--   tasks, task_prefix, task_head, task_tail, task_now  the form of the tasks of followers, see enqueue_form; '' if the
--               caller queues them
--   acks        how many arguments asynq's acknowledgement of the task has, which stand before the events; '' if the caller
--               returns its verdict to the queue
-- Answer: OK followers acknowledged
-- Answer: LOST state
--   OK    followers: messages of the backlog whose tasks the caller is to queue now, each with its epoch. They come
--         together when a third of the window is free, because that costs less
--   LOST  another attempt has begun, or the message is gone
-- Atomic because a result without its event would go unreported, and an event without its result would be wrong.
--
-- If the lease ended and no other worker began, the result is still true. So a waiting message with our fence
-- is finished too, and its attempt was not lost.

local m = redis.call('HMGET', KEYS[1], 'state', 'fence', 'lane', 'created', 'account', 'lease', 'rank', 'shared', 'key', 'merge',
  'size', 'token', 'scheduled', 'weighed')
local state, followers, acknowledged = m[1] or 'gone', '', ''
if m[2] == fence and not m[6] then return OK end -- this call is a repetition, perhaps a late one
if m[2] ~= fence or (state ~= 'active' and state ~= 'waiting') then return LOST end
local at = {state = state, lane = m[3], created = m[4], account = m[5], rank = m[7], shared = m[8], key = m[9], merge = m[10],
  size = m[11], token = m[12], scheduled = m[13], weighed = m[14] == '1'}
if state == 'waiting' then
  for _, field in ipairs({'attempts', 'max'}) do redis.call('HINCRBY', KEYS[1], field, -1) end
end
local ends = outcome == 'sent' or outcome == 'suppressed' or outcome == 'dropped'
if not ends then redis.call('HDEL', KEYS[1], 'lease') end -- it stays after its end, and means that the attempt is not recorded

if outcome == 'released' or outcome == 'deferred' or outcome == 'held' then
  local to = 'waiting'
  if tonumber(due) > tonumber(now) then to = 'delayed' end
  local fields = {'state', to, 'due', due, 'lapsed', lapsed, 'doubt', ''}
  for name, value in pairs({reservation = reservation, reason = reason, held = outcome == 'held' and hold or ''}) do
    if value ~= '' then fields[#fields + 1], fields[#fields + 2] = name, value end
  end
  redis.call('HSET', KEYS[1], unpack(fields))
  move(id, at, to, due)
  if outcome == 'held' then
    redis.call('ZADD', held_key(hold), turn(at), id)
    redis.call('SADD', prefix .. 'held', hold)
  end
end

if attempted == '1' then count(now, at, 'attempts') end
if status ~= '' then redis.call('SET', status_key(id), status) end
if in_doubt == '1' then redis.call('HINCRBY', KEYS[1], 'doubts', 1) end
if dialogue ~= '' then keep_dialogue(id, dialogue_of, dialogue) end
if ends then
  local stays = remember_text(id, record, text, now)
  if keep_content ~= '' then
    keep_for(id, at, keep_content)
    stays = true
  end
  remove(id, at, now, outcome == 'dropped' and 'failed' or outcome, record, keep_key, false, stays)
elseif outcome == 'delayed' or outcome == 'failed' then
  redis.call('HSET', KEYS[1], 'state', outcome, 'attempts', attempts, 'due', due, 'lapsed', '', 'doubt', '')
  if outcome == 'delayed' then move(id, at, 'delayed', due) else move(id, at, 'failed', now) end
end
for name, value, stay in string.gmatch(references, '(%S+) (%S+) (%S+)') do
  redis.call('SET', prefix .. 'reference:' .. name, value, 'EX', stay)
end
if outcome == 'sent' or outcome == 'suppressed' then count(now, at, outcome) end
if outcome == 'failed' or outcome == 'dropped' then count(now, at, 'failed') end
emit_all(events + (tonumber(acks) or 0))
local leaves = outcome ~= 'held' and outcome ~= 'released'
local backlog = leaves and redis.call('ZCARD', backlog_key(at)) or 0
if contended ~= '1' then
  local form = tasks ~= '' and {tasks, task_prefix, task_head, task_tail, task_now}
  local woken = follow(at, backlog, window, math.max(1, math.floor(window / 3)), now, line, form)
  if not form then followers = table.concat(woken, ' ') end
elseif backlog > 0 and redis.call('EXISTS', held_key(line)) == 0 then
  line_up(at, line, reason, line_due)
end
if acks ~= '' then
  acknowledge({unpack(KEYS, 2)}, {unpack(ARGV, events, events + acks - 1)})
  acknowledged = '1'
end
return OK
