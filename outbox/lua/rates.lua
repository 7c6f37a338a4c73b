-- rates adds what events say to the counters of hours and days, and moves the group rates behind these events.
--
-- KEYS[1] the stream of events
-- ARGV: former last events parts_most cells...
--   former      id of the last event that was counted before
--   last        id of the last event that is counted now
--   events      how many are counted now
--   parts_most  tags, lists or domains of an account that a day counts apart; further ones count together
--   cells       day, hour, account, part and numbers, separated by tabs; or #, account, event and number; or :, account,
--               counter (name:lane), minute since 1970 and number
-- Answer: OK
-- Answer: MOVED
--   MOVED  somebody counted events after former: nothing was done
-- Atomic because an event is counted exactly once if the group moves with the numbers. No event is delivered to the
-- group. So Redis notes nothing about each event, and the lag of the group is right for the trimming of the stream.

-- info returns fields and values of an answer of XINFO as a table.
local function info(answer)
  local fields = {}
  for i = 1, #answer, 2 do fields[answer[i]] = answer[i + 1] end
  return fields
end

local group = {}
for _, answer in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local one = info(answer)
  if one.name == 'rates' then group = one end
end
if group['last-delivered-id'] ~= former then return MOVED end

-- add adds numbers to those of a field, and keeps a new field's key for so many days. Negative ones take back what is
-- still there.
local function add(key, field, numbers, days)
  local old, sums = redis.call('HGET', key, field), {}
  if not old and string.find(numbers, '-', 1, true) then return end
  for n in string.gmatch(numbers, '-?%d+') do sums[#sums + 1] = tonumber(n) end
  local i = 0
  for n in string.gmatch(old or '', '%d+') do
    i = i + 1
    sums[i] = math.max(0, (sums[i] or 0) + tonumber(n))
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

local function count(account, event, number)
  local key = prefix .. 'rates:events:' .. account
  redis.call('HINCRBY', key, event, number)
  redis.call('EXPIRE', key, 400 * 86400)
end

local function add_cell(cell)
  local day, hour, account, part, numbers = string.match(cell, '^(%d+)\t(%d+)\t([^\t]*)\t([^\t]*)\t([%d,-]+)$')
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

for i = cells, #ARGV do
  local account, event, number = string.match(ARGV[i], '^#\t([^\t]*)\t(%a+)\t(%d+)$')
  local of, counter, minute, times = string.match(ARGV[i], '^:\t([^\t]*)\t([%a:]+)\t(%d+)\t(-?%d+)$')
  if account then
    count(account, event, number)
  elseif of then
    count_minute(of, counter, tonumber(minute), tonumber(times))
  else
    add_cell(ARGV[i])
  end
end

local read = 0
if group.lag then -- else this is Redis 6.2, or events were deleted: it does not know the lag
  read = info(redis.call('XINFO', 'STREAM', KEYS[1]))['entries-added'] - group.lag + tonumber(events)
end
if read > 0 then
  redis.call('XGROUP', 'SETID', KEYS[1], 'rates', last, 'ENTRIESREAD', read)
else
  redis.call('XGROUP', 'SETID', KEYS[1], 'rates', last)
end
return OK
