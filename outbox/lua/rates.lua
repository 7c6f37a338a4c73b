-- rates adds what events say to the counters of hours and days, and acknowledges the events for the group rates.
--
-- KEYS[1] the stream of events
-- ARGV: ids parts_most cells...
--   ids         of the events, separated by spaces
--   parts_most  tags, lists or domains of an account that a day counts apart; further ones count together
--   cells       day, hour, account, part and numbers, separated by tabs
-- Answer: OK
-- Answer: KNOWN known
--   KNOWN  the events of these ids were counted before: nothing was done
-- Atomic because an event is counted exactly once if it is acknowledged with its numbers. An event that is not
-- pending was counted by a call whose answer was lost.

local prefix = string.match(KEYS[1], '^(.-})') .. ':'
local counted = {}
for id in string.gmatch(ids, '%S+') do
  if #redis.call('XPENDING', KEYS[1], 'rates', id, id, 1) == 0 then counted[#counted + 1] = id end
end
if #counted > 0 then
  local known = table.concat(counted, ' ')
  return KNOWN
end

-- add adds numbers to those of a field, and keeps a new field's key for so many days.
local function add(key, field, numbers, days)
  local old, sums = redis.call('HGET', key, field), {}
  for n in string.gmatch(numbers, '%d+') do sums[#sums + 1] = tonumber(n) end
  local i = 0
  for n in string.gmatch(old or '', '%d+') do
    i = i + 1
    sums[i] = (sums[i] or 0) + tonumber(n)
  end
  redis.call('HSET', key, field, table.concat(sums, ','))
  if not old then redis.call('EXPIRE', key, days * 86400) end
end

-- within is a part that the day counts apart, or that of all others of its kind, which has no name.
local function within(key, part)
  if redis.call('HEXISTS', key, part) == 1 then return part end
  local kind = string.sub(part, 1, 2)
  local parts = '#' .. kind
  if tonumber(redis.call('HGET', key, parts) or 0) >= tonumber(parts_most) then return kind end
  redis.call('HINCRBY', key, parts, 1)
  return part
end

for i = cells, #ARGV do
  local day, hour, account, part, numbers = string.match(ARGV[i], '^(%d+)\t(%d+)\t([^\t]*)\t([^\t]*)\t([%d,]+)$')
  local of = account == '' and day or day .. ':' .. account
  local key = prefix .. 'rates:' .. of
  if string.match(part, '^[dlt]:') then
    part = within(key, part)
    add(key, part, numbers, 400)
    add(prefix .. 'rates:hours:' .. of, hour .. part, numbers, 35)
  else
    add(key, hour .. part, numbers, 400)
  end
end
for id in string.gmatch(ids, '%S+') do redis.call('XACK', KEYS[1], 'rates', id) end
return OK
