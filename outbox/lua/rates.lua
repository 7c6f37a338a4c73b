-- rates adds what events say to the counters of hours and days, and moves the group rates behind these events.
--
-- KEYS[1] the stream of events
-- ARGV: former last events parts_most cells...
--   former      id of the last event that was counted before
--   last        id of the last event that is counted now
--   events      how many are counted now
--   parts_most  tags, lists or domains of an account that a day counts apart; further ones count together
--   cells       day, hour, account, part and numbers, separated by tabs; or #, account, event and number; or :, account,
--               counter (name:lane), minute since 1970 and number; or =, account, day and number of messages; or =, account,
--               nothing and number of bytes that wait
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

-- numbers holds the counters by key and field: first as Redis has them, then with the events added. A field that Redis
-- doesn't have is false. So a batch reads and writes each hash once, however many of its fields it changes.
local numbers, wanted, changed, days_of = {}, {}, {}, {}

-- want notes a field that fetch is to read.
local function want(key, field)
  numbers[key], wanted[key] = numbers[key] or {}, wanted[key] or {}
  if numbers[key][field] == nil then
    numbers[key][field] = false
    table.insert(wanted[key], field)
  end
end

local at_once = 1000 -- fields of a command
local function fetch()
  for key, fields in pairs(wanted) do
    for first = 1, #fields, at_once do
      local found = redis.call('HMGET', key, unpack(fields, first, math.min(#fields, first + at_once - 1)))
      for i, value in ipairs(found) do numbers[key][fields[first + i - 1]] = value end
    end
  end
  wanted = {}
end

local function set(key, field, value)
  numbers[key][field] = value
  changed[key] = changed[key] or {}
  changed[key][field] = value
end

local function store()
  for key, fields in pairs(changed) do
    local pairs_of = {}
    for field, value in pairs(fields) do
      pairs_of[#pairs_of + 1], pairs_of[#pairs_of + 2] = field, value
    end
    for first = 1, #pairs_of, at_once do
      redis.call('HSET', key, unpack(pairs_of, first, math.min(#pairs_of, first + at_once - 1)))
    end
    if days_of[key] then redis.call('EXPIRE', key, days_of[key] * 86400) end
  end
end

-- add adds numbers to a field's numbers, and keeps a new field's key for so many days. Negative numbers undo
-- counts that are still there.
local function add(key, field, more, days)
  local old, sums = numbers[key][field], {}
  if not old and string.find(more, '-', 1, true) then return end
  for n in string.gmatch(more, '-?%d+') do sums[#sums + 1] = tonumber(n) end
  local i = 0
  for n in string.gmatch(old or '', '%d+') do
    i = i + 1
    sums[i] = math.max(0, (sums[i] or 0) + tonumber(n))
  end
  set(key, field, table.concat(sums, ','))
  if not old then days_of[key] = days end
end

-- within is a part that the day counts apart, or the part for all others of its kind, which has no name.
local apart = {} -- new ones of this batch
local function within(key, part, kind)
  if numbers[key][part] or apart[key .. part] then return part end
  local parts = tonumber(numbers[key]['#' .. kind] or 0)
  if parts >= tonumber(parts_most) then return kind end
  set(key, '#' .. kind, parts + 1)
  apart[key .. part] = true
  return part
end

local function count(account, event, number)
  local key = prefix .. 'rates:events:' .. account
  redis.call('HINCRBY', key, event, number)
  redis.call('EXPIRE', key, 400 * 86400)
end

local by_day = {}
for i = cells, #ARGV do
  local account, event, number = string.match(ARGV[i], '^#\t([^\t]*)\t(%a+)\t(%d+)$')
  local of, counter, minute, times = string.match(ARGV[i], '^:\t([^\t]*)\t([%a:]+)\t(%d+)\t(-?%d+)$')
  local owner, today, used = string.match(ARGV[i], '^=\t([^\t]*)\t(%d*)\t(-?%d+)$')
  if account then
    count(account, event, number)
  elseif owner and today ~= '' then
    count_day(today, owner, tonumber(used))
  elseif owner then
    use('bytes ' .. owner, used)
  elseif of then
    count_minute(of, counter, tonumber(minute), tonumber(times))
  else
    local day, hour, whose, part, more = string.match(ARGV[i], '^(%d+)\t(%d+)\t([^\t]*)\t([^\t]*)\t([%d,-]+)$')
    local suffix = whose == '' and day or day .. ':' .. whose
    local cell = {key = prefix .. 'rates:' .. suffix, hour = hour, part = part, more = more}
    if string.match(part, '^[dlt]:') then
      cell.hours, cell.kind = prefix .. 'rates:hours:' .. suffix, string.sub(part, 1, 2)
      want(cell.key, part)
      want(cell.key, cell.kind)
      want(cell.key, '#' .. cell.kind)
    else
      want(cell.key, hour .. part)
    end
    by_day[#by_day + 1] = cell
  end
end
fetch()
for _, cell in ipairs(by_day) do
  if cell.kind then
    cell.part = within(cell.key, cell.part, cell.kind)
    want(cell.hours, cell.hour .. cell.part)
  end
end
fetch()
for _, cell in ipairs(by_day) do
  if cell.kind then
    add(cell.key, cell.part, cell.more, 400)
    add(cell.hours, cell.hour .. cell.part, cell.more, 35)
  else
    add(cell.key, cell.hour .. cell.part, cell.more, 400)
  end
end
store()

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
