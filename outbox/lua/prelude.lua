-- The common part of all scripts of the outbox. It stands before the body of each.
--
-- KEYS[1] of each script is the hash of its message, or any key of the partition for a script about many messages.
-- The other keys are made from its prefix. A Redis Cluster allows that, because the tag in braces puts all keys of
-- a partition in one slot. Times are Unix milliseconds of the caller, whose clock follows that of Redis.

local prefix = string.match(KEYS[1], '^(.-})') .. ':'

local function message_key(id) return prefix .. 'message:' .. id end
local function envelope_key(id) return prefix .. 'envelope:' .. id end
local function content_key(id) return prefix .. 'content:' .. id end
local function status_key(id) return prefix .. 'status:' .. id end
local function index_key(lane, state) return prefix .. 'index:' .. lane .. ':' .. state end
local function log_key(lane, result) return prefix .. 'log:' .. lane .. ':' .. result end
local function shared_key(name) return prefix .. 'shared:' .. name end
local function held_key(account) return prefix .. 'held:' .. account end

-- emit appends an event to the stream; emit_all appends those in ARGV from an index on.
local function emit(event) redis.call('XADD', prefix .. 'events', '*', 'e', event) end
local function emit_all(first)
  for i = first, #ARGV do emit(ARGV[i]) end
end

-- count adds one to a counter of the current minute: of all accounts and of this one. The minutes of an hour share a
-- hash, which lives a little longer than the longest window.
local function count(now, at, name)
  local minute = math.floor(tonumber(now) / 60000)
  local all, field = prefix .. 'stats:' .. math.floor(minute / 60), name .. ':' .. at.lane .. ':' .. (minute % 60)
  for _, key in ipairs({all, all .. ':' .. at.account}) do
    if redis.call('HINCRBY', key, field, 1) == 1 then redis.call('EXPIRE', key, 93600) end
  end
end

-- enlist adds a message to an index and to the account's part of it; strike removes it.
local function enlist(key, at, id)
  redis.call('ZADD', key, at.created, id)
  redis.call('ZADD', key .. ':' .. at.account, at.created, id)
end
local function strike(key, at, id)
  redis.call('ZREM', key, id)
  redis.call('ZREM', key .. ':' .. at.account, id)
end

-- clocks are the sorted sets by time of three states: the end of the lease, the due time, the time of the failure.
local clocks = {active = prefix .. 'leases', delayed = prefix .. 'due', failed = prefix .. 'dead'}

-- where reads what move and remove need of a message.
local function where(id)
  local m = redis.call('HMGET', message_key(id), 'lane', 'state', 'created', 'account')
  return {lane = m[1], state = m[2], created = m[3], account = m[4]}
end

-- move moves a message to the index and the clock of another state. The caller writes the field state.
local function move(id, at, to, score)
  strike(index_key(at.lane, at.state), at, id)
  enlist(index_key(at.lane, to), at, id)
  if clocks[at.state] then redis.call('ZREM', clocks[at.state], id) end
  if clocks[to] then redis.call('ZADD', clocks[to], score, id) end
end

-- take_shared and leave_shared count the messages that are rendered from a shared content. A content without messages
-- stays for a while: the first message of a merge may end before the last one comes. take_shared returns false if
-- the content does not exist.
local shared_stays = 600
local function take_shared(name)
  if redis.call('EXISTS', shared_key(name)) == 0 then return false end
  if redis.call('HINCRBY', prefix .. 'sharedUsers', name, 1) == 1 then redis.call('PERSIST', shared_key(name)) end
  return true
end
local function leave_shared(name)
  if redis.call('HINCRBY', prefix .. 'sharedUsers', name, -1) > 0 then return end
  redis.call('HDEL', prefix .. 'sharedUsers', name)
  redis.call('EXPIRE', shared_key(name), shared_stays)
end

-- facts_stay is how long facts of a message that is not in the log are kept: longer than any reporter repeats one.
local facts_stay = 259200

-- enter writes the log entry of a message; record '': there is no log. The list of ended messages has what purge.lua
-- needs to delete the entry.
local function enter(id, at, now, result, record)
  if record == '' then
    redis.call('SET', prefix .. 'ended:' .. id, '', 'EX', 300) -- accept.lua needs it if its client repeats the call
    redis.call('EXPIRE', prefix .. 'facts:' .. id, facts_stay)
    return
  end
  redis.call('SET', prefix .. 'ended:' .. id, record)
  redis.call('RPUSH', prefix .. 'ended', table.concat({string.format('%.0f', now), id, at.lane, result, at.account}, ' '))
  enlist(log_key(at.lane, result), at, id)
end

-- remove deletes a live message, and its content unless that stays, and writes its log entry.
local function remove(id, at, now, result, record, stays)
  strike(index_key(at.lane, at.state), at, id)
  if clocks[at.state] then redis.call('ZREM', clocks[at.state], id) end
  if at.state ~= 'active' then redis.call('ZREM', prefix .. 'unqueued', id) end
  local shared = redis.call('HGET', message_key(id), 'shared')
  if shared then leave_shared(shared) end
  redis.call('DEL', message_key(id), envelope_key(id), status_key(id))
  if not stays then redis.call('DEL', content_key(id)) end
  enter(id, at, now, result, record)
end

-- remember_text keeps the text of an ended message until the search index has it, or until its log entry is deleted:
-- 't' and the text, or 'c' for a content that stays. Then it returns true. Beyond texts_most no text is kept.
local texts_most = 100000
local function remember_text(id, record, text)
  if text == '' or record == '' or redis.call('HLEN', prefix .. 'texts') >= texts_most then return false end
  redis.call('HSET', prefix .. 'texts', id, text)
  return text == 'c'
end

-- wake gives the message a new epoch, whose task id no older task has, and notes that its task is not queued yet.
local function wake(id, now)
  local epoch = redis.call('HINCRBY', message_key(id), 'epoch', 1)
  redis.call('ZADD', prefix .. 'unqueued', now, id)
  return tostring(epoch)
end
