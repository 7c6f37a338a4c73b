-- purge forgets dead letters past their retention or beyond their number, and the traces of ended messages likewise.
--
-- KEYS[1] any key of the partition
-- ARGV 1 now, 2 dead letters failed before this time go, 3 dead letters kept at most, 4 ended before this time go, 5 ended kept at most,
--      6 how many at most in one call
--      7 seconds to remember that a dead letter failed
-- Result triples of id, lane, epoch: the dead letters that went, whose tasks may go too
-- Atomic per message: a replay may reopen it at this moment.

local now, limit = tonumber(ARGV[1]), tonumber(ARGV[6])
local function expired(key, before, keep)
  local ids = redis.call('ZRANGEBYSCORE', key, '-inf', before, 'LIMIT', 0, limit)
  local surplus = redis.call('ZCARD', key) - #ids - tonumber(keep)
  if surplus > 0 and #ids < limit then
    local last = #ids + math.min(surplus, limit - #ids) - 1
    ids = redis.call('ZRANGE', key, 0, last)
  end
  return ids
end

local dead = expired(prefix .. 'dead', ARGV[2], ARGV[3])
local gone = {}
for _, id in ipairs(dead) do
  local at, epoch = where(id), redis.call('HGET', message_key(id), 'epoch')
  remove(id, at, now, cjson.encode({account = at.account, result = 'failed'}), ARGV[7])
  gone[#gone + 1] = id
  gone[#gone + 1] = at.lane
  gone[#gone + 1] = epoch
end
for _, id in ipairs(expired(prefix .. 'ended', ARGV[4], ARGV[5])) do
  redis.call('ZREM', prefix .. 'ended', id)
  redis.call('DEL', prefix .. 'ended:' .. id)
end
return gone
