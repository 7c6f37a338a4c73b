-- What every script of the outbox shares. It stands before the body of each.
--
-- All scripts take KEYS[1] = the hash of the message they are about (or any key of the partition, for those about many), and make the
-- other keys from its prefix. That is allowed in a Redis Cluster because the tag in braces puts all keys of a partition in one slot.
-- Times are Unix milliseconds, given by the caller, who keeps its clock to Redis' own.

local prefix = string.match(KEYS[1], '^(.-})') .. ':'

local function message_key(id) return prefix .. 'message:' .. id end
local function envelope_key(id) return prefix .. 'envelope:' .. id end
local function content_key(id) return prefix .. 'content:' .. id end
local function status_key(id) return prefix .. 'status:' .. id end
local function index_key(lane, state) return prefix .. 'index:' .. lane .. ':' .. state end
local function log_key(lane, result) return prefix .. 'log:' .. lane .. ':' .. result end
local function shared_key(name) return prefix .. 'shared:' .. name end
local function held_key(account) return prefix .. 'held:' .. account end

-- emit appends an event to the stream, emit_all those from an index of ARGV on. No other script of this package writes to the
-- stream, so no change can go unreported.
local function emit(event) redis.call('XADD', prefix .. 'events', '*', 'e', event) end
local function emit_all(first)
  for i = first, #ARGV do emit(ARGV[i]) end
end

-- count adds one to a counter of the current minute, of everybody and of the account. An hour's minutes share a hash that lives a little
-- longer than the longest window.
local function count(now, at, name)
  local minute = math.floor(tonumber(now) / 60000)
  local all, field = prefix .. 'stats:' .. math.floor(minute / 60), name .. ':' .. at.lane .. ':' .. (minute % 60)
  for _, key in ipairs({all, all .. ':' .. at.account}) do
    if redis.call('HINCRBY', key, field, 1) == 1 then redis.call('EXPIRE', key, 93600) end
  end
end

-- enlist and strike keep an index and its part for the account.
local function enlist(key, at, id)
  redis.call('ZADD', key, at.created, id)
  redis.call('ZADD', key .. ':' .. at.account, at.created, id)
end
local function strike(key, at, id)
  redis.call('ZREM', key, id)
  redis.call('ZREM', key .. ':' .. at.account, id)
end

-- clocks are the sorted sets that only some states need: when a lease runs out, a delayed message is due, a message failed.
local clocks = {active = prefix .. 'leases', delayed = prefix .. 'due', failed = prefix .. 'dead'}

-- where reads what move and remove need to know about a message.
local function where(id)
  local m = redis.call('HMGET', message_key(id), 'lane', 'state', 'created', 'account')
  return {lane = m[1], state = m[2], created = m[3], account = m[4]}
end

-- move puts a message under another state: its index and its clock. The caller writes the field, with the others it changes.
local function move(id, at, to, score)
  strike(index_key(at.lane, at.state), at, id)
  enlist(index_key(at.lane, to), at, id)
  if clocks[at.state] then redis.call('ZREM', clocks[at.state], id) end
  if clocks[to] then redis.call('ZADD', clocks[to], score, id) end
end

-- take_shared and leave_shared count the messages that are rendered from a shared content. A content without messages stays
-- for a while: the first message of a merge may be gone before the last one comes. take_shared is false if there is no content.
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

-- facts_stay is how long facts are remembered of a message that nothing else is remembered of: longer than anybody repeats one.
local facts_stay = 259200

-- enter puts what became of a message into the log: the result and the record of it, '' for none. The list of ended messages names all
-- that purge.lua needs to take the entry out again.
local function enter(id, at, now, result, record)
  if record == '' then
    redis.call('SET', prefix .. 'ended:' .. id, '', 'EX', 300) -- accept.lua must know this id when its client repeats itself
    redis.call('EXPIRE', prefix .. 'facts:' .. id, facts_stay)
    return
  end
  redis.call('SET', prefix .. 'ended:' .. id, record)
  redis.call('RPUSH', prefix .. 'ended', table.concat({string.format('%.0f', now), id, at.lane, result, at.account}, ' '))
  enlist(log_key(at.lane, result), at, id)
end

-- remove forgets a live message, and its content unless that is to stay, and enters what became of it in the log.
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

-- remember_text keeps what people read of a message that ended until the search index has it, or until the log forgets the message: 't' and the
-- text itself, or 'c', for its content tells, which is to stay: then the answer is true. An index that lags far behind does without.
local texts_most = 100000
local function remember_text(id, record, text)
  if text == '' or record == '' or redis.call('HLEN', prefix .. 'texts') >= texts_most then return false end
  redis.call('HSET', prefix .. 'texts', id, text)
  return text == 'c'
end

-- wake asks for a task: it gives the message a new epoch, so that no older task can be in the way, and notes that the task is owed.
local function wake(id, now)
  local epoch = redis.call('HINCRBY', message_key(id), 'epoch', 1)
  redis.call('ZADD', prefix .. 'unqueued', now, id)
  return tostring(epoch)
end
