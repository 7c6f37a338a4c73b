-- take stores events of one recipient.
--
-- KEYS[1] recipient, KEYS[2] recipients of the account, KEYS[3] due, KEYS[4..7] keys known of today, of
-- tomorrow (by the clock of a process that is ahead), yesterday and the day before, KEYS[8...] lists of events
-- ARGV: version now id email name locale tz keep known retention events...
--   version                the caller knows the recipient at this version; '': that there is none
--   id                     of the recipient
--   email name locale tz   set if the recipient has none; '': nothing
--   keep                   lines of a list
--   known, retention       seconds that keys of events and events are kept
--   events                 of each: number of the list (1...; 0: dropped), category, key (8 bytes; '': none),
--                          fingerprint (8 bytes), state, schedule (member of due; ''), time due (milliseconds), line
-- Answer: CHANGED
-- Answer: TAKEN results
--   results  of each event, separated by newlines: "N <due>" taken, "H <state> <due>" its key was used for it,
--            "R" its key was used for another event, "M" the recipient has too many categories
-- Atomic because an event without an entry in due would wait for ever, and a key without its event would lose it.
local has = redis.call('HGET', KEYS[1], 'version') or ''
if has ~= version then return CHANGED end
local fresh, fill = has == '', {}
local given = {email = email, name = name, locale = locale, tz = tz}
for field, value in pairs(given) do
  if value ~= '' and (redis.call('HGET', KEYS[1], field) or '') == '' then
    fill[#fill + 1] = field
    fill[#fill + 1] = value
  end
end
if fresh or #fill > 0 then
  redis.call('HINCRBY', KEYS[1], 'version', 1)
  redis.call('HSETNX', KEYS[1], 'created', now)
  redis.call('HSET', KEYS[1], 'updated', now, unpack(fill))
  redis.call('ZADD', KEYS[2], 0, id)
end

local results = {}
for i = events, #ARGV, 8 do
  local list, category, key, fingerprint, state, member, due, line = tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2],
    ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7]
  local first
  for day = 4, 7 do
    if key ~= '' then first = first or redis.call('HGET', KEYS[day], key) end
  end
  if first and string.sub(first, 1, 8) ~= fingerprint then
    results[#results + 1] = 'R'
  elseif first then
    results[#results + 1] = 'H ' .. string.sub(first, 9)
  else
    local many = false
    if list > 0 and redis.call('HSETNX', KEYS[1], 'c:' .. category, 1) == 1 and redis.call('HINCRBY', KEYS[1], 'categories', 1) > 32 then
      redis.call('HDEL', KEYS[1], 'c:' .. category)
      redis.call('HINCRBY', KEYS[1], 'categories', -1)
      many = true
    end
    if many then
      results[#results + 1] = 'M'
    else
      if list > 0 then
        redis.call('RPUSH', KEYS[7 + list], line)
        trim(KEYS[7 + list], tonumber(keep), 10)
        remember(KEYS[7 + list], retention)
        redis.call('ZADD', KEYS[3], 'LT', due, member)
        due = redis.call('ZSCORE', KEYS[3], member)
      end
      if key ~= '' then
        redis.call('HSET', KEYS[4], key, fingerprint .. state .. ' ' .. string.format('%.0f', due))
        redis.call('EXPIRE', KEYS[4], known)
      end
      results[#results + 1] = 'N ' .. string.format('%.0f', due)
    end
  end
end
results = table.concat(results, '\n')
return TAKEN
