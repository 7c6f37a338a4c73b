-- accept makes a message durable: record, envelope, content, indexes, idempotency key and first event, or none of them.
--
-- KEYS[1] message hash   then the idempotency key (absent without one), then what the suppressions want looked at, see look.lua there
--      (absent where they were asked, or nobody is)
-- ARGV 1 id, 2 now, 3 due, 4 lane, 5 account, 6 attempts allowed, 7 gateway, 8 envelope, 9 content ('': it lies in the incoming key), 10 limit of live messages ('': none),
--      11 fingerprint, 12 first answer, 13 seconds to keep the key, 14 share of Redis' maxmemory that may be used ('': don't look), 15 the
--      shared content it is rendered from ('': its content is the message), 16 epoch of its task, 17 fields to look at in each hash of the
--      suppressions ('': don't look), 18 and on these fields; last the messageQueued event
-- Result {'NEW'}, {'HIT', first answer}, {'REUSED'} the key with another body, {'AGAIN'} it was accepted before, {'ASK'} somebody may be
--        suppressed: ask, and come again without looking,
--        {'FULL', of what: messages or memory}, {'UNSHARED'} its shared content is not there, see share.lua, {'LOST'} its content is not
-- A client repeats a command whose answer it lost. Ids are random, so a message with this id is this very message, which may even have
-- been sent since.
-- Atomic because a key claimed without its message would answer HIT for mail that does not exist.

-- Times are handed on as they came: a number is written out anew for each call.
local id, now, due, lane, account = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local key = ARGV[11] ~= '' and KEYS[2]
local incoming = ARGV[9] == '' and prefix .. 'incoming:' .. id

-- refuse leaves nothing behind.
local function refuse(answer)
  if incoming then redis.call('DEL', incoming) end
  return answer
end

if key then
  local first = redis.call('GET', key)
  if first then
    local size = #ARGV[11]
    if string.sub(first, 1, size) ~= ARGV[11] then return refuse({'REUSED'}) end
    redis.call('SETRANGE', key, 0, string.sub(first, 1, 1)) -- changes nothing, but WAIT confirms the last write of its connection
    return refuse({'HIT', string.sub(first, size + 1)})
  end
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'epoch', 0) -- likewise
  return {'AGAIN'}
end
if redis.call('EXISTS', prefix .. 'ended:' .. id) == 1 then return {'AGAIN'} end
local version = '' -- of the suppressions, at which nobody was stopped
if ARGV[17] ~= '' then
  version = unstopped(key and 3 or 2, 18, tonumber(ARGV[17]))
  if not version then return {'ASK'} end -- the content stays: it comes again
end
if ARGV[14] ~= '' then
  local info = redis.pcall('INFO', 'memory')
  if type(info) == 'string' then -- else this server does not tell
    local used, most = string.match(info, 'used_memory:(%d+)'), string.match(info, 'maxmemory:(%d+)')
    if used and most and tonumber(used) > tonumber(most) * tonumber(ARGV[14]) and tonumber(most) > 0 then return refuse({'FULL', 'memory'}) end
  end
end
local limit = tonumber(ARGV[10])
if limit then
  local live = 0
  for _, l in ipairs({'transactional', 'bulk'}) do
    for _, s in ipairs({'waiting', 'delayed', 'active'}) do live = live + redis.call('ZCARD', index_key(l, s)) end
  end
  if live >= limit then return refuse({'FULL', 'messages'}) end
end
if incoming and redis.call('EXISTS', incoming) == 0 then return {'LOST'} end
if ARGV[15] ~= '' and not take_shared(ARGV[15]) then return {'UNSHARED'} end -- it will come again

local state = 'waiting'
if tonumber(due) > tonumber(now) then
  state = 'delayed'
  redis.call('ZADD', prefix .. 'due', due, id)
end
redis.call('HSET', KEYS[1], 'state', state, 'lane', lane, 'account', account, 'created', now, 'due', due, 'scheduled', due,
  'epoch', ARGV[16], 'fence', 0, 'max', ARGV[6]) -- no attempts yet, which takes no room
if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'gateway', ARGV[7]) end
if ARGV[15] ~= '' then redis.call('HSET', KEYS[1], 'shared', ARGV[15]) end
if version ~= '' then redis.call('HSET', KEYS[1], 'v', version) end
redis.call('SET', envelope_key(id), ARGV[8])
if incoming then
  redis.call('RENAME', incoming, content_key(id))
  redis.call('PERSIST', content_key(id))
else
  redis.call('SET', content_key(id), ARGV[9])
end
local at = {lane = lane, account = account, created = now}
enlist(index_key(lane, state), at, id)
redis.call('ZADD', prefix .. 'unqueued', now, id)
if key then
  redis.call('SET', key, ARGV[11] .. ARGV[12], 'EX', ARGV[13])
end
count(now, at, 'queued')
emit(#ARGV)
return {'NEW'}
