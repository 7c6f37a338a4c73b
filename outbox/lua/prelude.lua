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
local function account_key(account) return prefix .. 'index:account:' .. account end
local function held_key(account) return prefix .. 'held:' .. account end

-- emit appends events to the stream; it is the only writer of it in this package, so no change can go unreported.
local function emit(first)
  for i = first, #ARGV do
    redis.call('XADD', prefix .. 'events', '*', 'e', ARGV[i])
  end
end

-- count adds to a counter of the current minute. An hour's minutes share a hash that lives a little longer than the longest window.
local function count(now, name, n)
  local minute = math.floor(now / 60000)
  local key = prefix .. 'stats:' .. math.floor(minute / 60)
  if redis.call('HINCRBY', key, name .. ':' .. (minute % 60), n) == n then redis.call('EXPIRE', key, 93600) end
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
  redis.call('ZREM', index_key(at.lane, at.state), id)
  redis.call('ZADD', index_key(at.lane, to), at.created, id)
  if clocks[at.state] then redis.call('ZREM', clocks[at.state], id) end
  if clocks[to] then redis.call('ZADD', clocks[to], score, id) end
end

-- remove forgets a live message and its content, and remembers for a while what became of it (ended: JSON, ttl: seconds, 0 for not at all).
local function remove(id, at, now, ended, ttl)
  redis.call('ZREM', index_key(at.lane, at.state), id)
  redis.call('ZREM', account_key(at.account), id)
  if clocks[at.state] then redis.call('ZREM', clocks[at.state], id) end
  if at.state ~= 'active' then redis.call('ZREM', prefix .. 'unqueued', id) end
  redis.call('DEL', message_key(id), envelope_key(id), content_key(id), status_key(id))
  if tonumber(ttl) > 0 then
    redis.call('SET', prefix .. 'ended:' .. id, ended, 'EX', ttl)
    redis.call('ZADD', prefix .. 'ended', now, id)
  end
end

-- wake asks for a task: it gives the message a new epoch, so that no older task can be in the way, and notes that the task is owed.
local function wake(id, now)
  local epoch = redis.call('HINCRBY', message_key(id), 'epoch', 1)
  redis.call('ZADD', prefix .. 'unqueued', now, id)
  return tostring(epoch)
end
