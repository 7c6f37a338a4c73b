-- accept writes a message: record, envelope, content, indexes, idempotency key and first event, or none of them.
--
-- KEYS[1] message hash, then the idempotency key (absent without one), then the keys of the suppressions to look
--         at (see look.lua there; absent if look_each is empty)
-- ARGV: id now deadline due lane account max gateway envelope content live_most fingerprint memo merge memory_share shared epoch window rank
-- ARGV: made reservation size token day quotas partitions addressed keep_addressed event
-- ARGV: enqueue task tasks enqueue1 enqueue2 enqueue3 look_each look_fields...
--   deadline      when the caller gives up, in milliseconds: later, nothing is accepted; '' for never
--   content       '' if it is in the incoming key
--   live_most     limit of live messages of this partition; '' for none
--   fingerprint   the body's under the key, see same; '' if there is no key
--   memo          the first answer to the key; it begins with the id
--   merge         hash of the key of the mail merge under which the message has a place; '' for none
--   memory_share  share of Redis' maxmemory that may be used; '' if not checked
--   rank          its priority's, see turn; '' for normal
--   made          attempts that were made before; '' for none
--   reservation   the one of the limit that the message waits for; '' for none
--   shared        the shared content that the message is rendered from; '' if its content is the message
--   event         '' for none
--   size          bytes of the message as it is sent
--   token         id of the token that submits it, if that has a quota
--   day           the day for counting accepted messages; '' if it was counted before
--   quotas        the limits to keep to, see over; '' for none
--   partitions    how many partitions the script can see; '' for its own
--   addressed, keep_addressed  see note_addressed
--   enqueue       asynq's script that queues the task, with its keys and its arguments; '' if the caller queues it, when the
--                 answer is NEW
--   look_each     number of fields to read in each hash of the suppressions; '' if none is read
-- Answer: NEW
-- Answer: BACKLOG
-- Answer: HIT first state
-- Answer: REUSED
-- Answer: AGAIN
-- Answer: ASK
-- Answer: FULL first
-- Answer: OVER first
-- Answer: UNSHARED
-- Answer: LOST
-- Answer: LATE
--   HIT       the key was used by this body: its first answer, and the status of that message
--   REUSED    the key was used with another body
--   AGAIN     the message was accepted before
--   ASK       a recipient may be suppressed: ask the suppressions, and call again without look_each
--   BACKLOG   as NEW, and the message is in the backlog of its account: its task is queued later
--   FULL      first is messages or memory
--   OVER      a quota has no room: first says whose, which, and what is used of it
--   UNSHARED  the shared content does not exist, see share.lua
--   LOST      the content is not in the incoming key
--   LATE      the call was stuck on its way. Its caller may have submitted the message again since, and cancelled
--             that, which frees the key
-- A client repeats a command whose answer it lost. Ids are random, so a message with this id is this message. It
-- may have been sent since.
-- Atomic because a key claimed without its message would answer HIT for mail that does not exist.

-- Times stay strings: Lua would format a number again for each call.
local key = fingerprint ~= '' and KEYS[2]
local incoming = content == '' and prefix .. 'incoming:' .. id

-- refuse deletes the incoming content and returns the answer.
local function refuse(answer)
  if incoming then redis.call('DEL', incoming) end
  return answer
end

if key then
  local print, first, state = used(key)
  if print and same(print, fingerprint) then return refuse(HIT) end
  if print then return refuse(REUSED) end
end
if redis.call('EXISTS', KEYS[1], prefix .. 'ended:' .. id) > 0 then
  if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HINCRBY', KEYS[1], 'epoch', 0) end -- likewise
  return AGAIN
end
if deadline ~= '' then
  local clock = redis.call('TIME')
  if clock[1] * 1000 + clock[2] / 1000 > tonumber(deadline) then return refuse(LATE) end
end
local version = '' -- of the suppressions without an entry about the recipients
if look_each ~= '' then
  version = unstopped(key and 3 or 2, look_fields, tonumber(look_each))
  if not version then return ASK end -- the content stays for the next call
end
if memory_share ~= '' then
  local info = redis.pcall('INFO', 'memory')
  if type(info) == 'string' then -- else this server does not support it
    local used, most = string.match(info, 'used_memory:(%d+)'), string.match(info, 'maxmemory:(%d+)')
    if used and most and tonumber(used) > tonumber(most) * tonumber(memory_share) and tonumber(most) > 0 then
      local first = 'memory'
      return refuse(FULL)
    end
  end
end
local limit = tonumber(live_most)
if limit then
  local live = 0
  for _, l in ipairs({'transactional', 'bulk'}) do
    for _, s in ipairs(waiting_states) do live = live + redis.call('ZCARD', index_key(l, s)) end
  end
  local first = 'messages'
  if live >= limit then return refuse(FULL) end
end
local first = quotas ~= '' and over(quotas, partitions, account, tonumber(size), day, 1)
if first then return refuse(OVER) end
if incoming and redis.call('EXISTS', incoming) == 0 then return LOST end
if shared ~= '' and not take_shared(shared) then return UNSHARED end -- the content stays for the next call

local state = 'waiting'
if tonumber(due) > tonumber(now) then
  state = 'scheduled'
  redis.call('ZADD', prefix .. 'due', due, id)
end
local record = {'state', state, 'lane', lane, 'account', account, 'created', now, 'due', due, 'scheduled', due, 'epoch', epoch,
  'fence', 0, 'max', max} -- 0 attempts are not stored
local function note(name, value)
  if value ~= '' then record[#record + 1], record[#record + 2] = name, value end
end
note('gateway', gateway)
note('shared', shared)
note('rank', rank)
note('attempts', made)
note('reservation', reservation)
note('size', size)
note('token', token)
note('v', version)
local at = {lane = lane, account = account, created = now, rank = rank ~= '' and rank, size = size,
  token = token ~= '' and token}
local backlog, late = 0, false -- late: the window of the account has no room
if state == 'waiting' then
  local others = redis.call('ZCARD', index_key(lane, state) .. ':' .. account) -- with those of the backlog
  if others > 0 then backlog = redis.call('ZCARD', backlog_key(at)) end
  late = backlog > 0 and rank ~= '-1' or is_full(at, others - backlog, window)
  if late then note('putOff', epoch) end
end
if key then
  note('key', string.match(key, '[^:]+$'))
  note('merge', merge)
end
at.weighed = event == '' or has_quota(quotas, account)
if at.weighed then note('weighed', '1') end
redis.call('HSET', KEYS[1], unpack(record))
if incoming then
  redis.call('SET', envelope_key(id), envelope)
  redis.call('RENAME', incoming, content_key(id))
  redis.call('PERSIST', content_key(id))
else
  redis.call('MSET', envelope_key(id), envelope, content_key(id), content)
end
weigh(at, '')
if day ~= '' then
  if at.weighed then count_day(day, account, 1) end
  if at.token then count_day(day, 'token:' .. token, 1) end
end
enlist(index_key(lane, state), at, id)
local word = NEW
if late then
  word = BACKLOG
  put_off(at, id, backlog)
elseif enqueue == '' then
  redis.call('ZADD', prefix .. 'unqueued', now, id)
else
  local run = enqueue == 'enqueue_now' and enqueue_now or enqueue_later
  run({task, tasks}, {enqueue1, enqueue2, enqueue3})
end
if key then
  redis.call('SET', key, table.concat({stored(fingerprint), '', memo}, ' '))
  if merge ~= '' then take_merge(merge, stored(fingerprint)) end
end
note_addressed(id, addressed, keep_addressed)
if event ~= '' then
  count(now, at, 'queued')
  if at.weighed or day == '' then counted[#counted + 1] = 'counted' end -- of its day; otherwise rates.lua counts it
  emit(event)
else
  for _, of in ipairs({'', account}) do count_minute(of, 'queued:' .. lane, math.floor(tonumber(now) / 60000), 1) end
end
return word
