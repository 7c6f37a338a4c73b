-- begin claims a message for one attempt: it takes the lease and returns the fencing token for all later writes.
--
-- KEYS[1] message hash, or any key of the partition
-- KEYS[2] version of the suppressions (absent where there is none), then the keys of asynq's look for a task
-- ARGV: id now lease_until content_most window take_keys takes...
--   id            '' for the task that asynq's look for one finds
--   content_most  largest content that is returned, in bytes, because Lua copies it. A larger one is read in pieces.
--                 The personalization of a shared content is always returned
--   take_keys     how many keys asynq's look for a task has; takes are its arguments
-- Answer: GO fence attempts max gateway lapsed began lost doubts scheduled envelope content status lane reservation
-- Answer: GO urgent created old_doubts shared cleared passes due
-- Answer: GO task task_id left
-- Answer: GONE task task_id left
-- Answer: FAILED task task_id left
-- Answer: EARLY task task_id left due
-- Answer: HELD task task_id left lease
-- Answer: LATER task task_id left
-- Answer: NONE
--   GO       content '': to be read in pieces; cleared 1: accept.lua found no recipient suppressed, and none was added
--            passes 1: it goes before messages that wait in a line for a relay
--   GONE     it ended, or never existed
--   FAILED   it is a dead letter
--   HELD     another attempt has it, until lease
--   LATER    it is in the backlog of its account
--   NONE     there is no task
--   task, task_id, left  the task that was taken, its id, and how many tasks wait in its queue
-- Atomic because two workers that both read "waiting" would both send. An active message is never claimed, even if
-- its lease has ended: only expire_leases.lua ends a lease, so that one place judges a lost attempt.

local task, task_id, left = '', '', 0
if id == '' then
  local keys = {unpack(KEYS, #KEYS - take_keys + 1)}
  task, left = take(keys, {unpack(ARGV, takes)})
  if not task then return NONE end
  task_id = taken(keys)
  id = string.match(task_id, '^[^.]*')
  KEYS[1] = message_key(id)
end
local version = #KEYS > 1 + (tonumber(take_keys) or 0) and KEYS[2]
local m = redis.call('HMGET', KEYS[1], 'state', 'due', 'lease', 'attempts', 'max', 'gateway', 'lapsed', 'began', 'lost', 'doubts', 'scheduled',
  'lane', 'created', 'fence', 'reservation', 'urgent', 'reason', 'account', 'oldDoubts', 'shared', 'v', 'rank', 'woken', 'size', 'epoch', 'putOff')
if not m[1] then return GONE end
if m[1] == 'failed' then return FAILED end
local due, lease = m[2], m[3]
if m[1] == 'active' then return HELD end
if tonumber(due) > tonumber(now) then return EARLY end

local at = {lane = m[12], state = m[1], created = m[13], account = m[18], rank = m[22], scheduled = m[11]}
at.queued = at.state == 'waiting' and m[25] ~= m[26] -- it is in no backlog: the window had room for it
local backlog = not m[16] and not at.queued and redis.call('ZCARD', backlog_key(at))
if backlog and is_full(at, under_way(at, backlog), window) then
  if at.state ~= 'waiting' then
    redis.call('HSET', KEYS[1], 'state', 'waiting', 'putOff', m[25])
    move(id, at, 'waiting')
  end
  put_off(at, id, backlog)
  redis.call('ZREM', prefix .. 'unqueued', id)
  return LATER
end

local attempts, max, gateway, lapsed, began = m[4] or '0', m[5], m[6] or '', m[7] or '', m[8] or '0'
local lost, doubts, scheduled, lane, created = m[9] or '0', m[10] or '0', m[11], m[12], m[13]
local fence, reservation, urgent = tostring(tonumber(m[14]) + 1), m[15] or '', m[16] or ''
local old_doubts, shared = m[19] or '0', m[20] or ''
move(id, at, 'active', lease_until)
redis.call('HSET', KEYS[1], 'state', 'active', 'fence', fence, 'lease', lease_until, 'began', now, 'doubt', '')
if m[15] or m[16] or m[17] or m[23] then redis.call('HDEL', KEYS[1], 'reservation', 'urgent', 'reason', 'held', 'woken') end
local passes = (m[16] or m[23] or at.rank == '-1') and '1' or ''
-- a message that is small needs no look at how small its content was packed
local small = shared ~= '' or tonumber(m[24] or content_most) < tonumber(content_most) or
  redis.call('STRLEN', content_key(id)) <= tonumber(content_most)
local wanted = {envelope_key(id), status_key(id)}
if small then wanted[3] = content_key(id) end
if version then wanted[#wanted + 1] = version end
local parts = redis.call('MGET', unpack(wanted))
local envelope, status, content = parts[1] or '', parts[2] or '', small and parts[3] or ''
local cleared = m[21] and version and parts[#wanted] == m[21] and '1' or ''
return GO
