-- add_events stores events for recipients of one account and one shard.
--
-- KEYS[1] recipients of the account, KEYS[2] due; then of each recipient: itself, its keys known of the day before
-- yesterday, of yesterday, today and tomorrow (by the clock of a process that is ahead), its lists of events
-- ARGV: now today keep known retention recipients...
--   today             its number
--   keep              lines of a list
--   known, retention  seconds that keys of events and events are kept
--   recipients        of each: version, id, number of its lists, number of its events, email, name, locale, tz, events
--     version         the caller knows the recipient at this version; '' if there is none
--     email to tz     set if the recipient has none; '' for nothing
--     events          of each: number of the list (1...; 0: dropped), category, key (8 bytes; '': none),
--                     fingerprint (8 bytes), state, schedule (member of due; ''), time due (milliseconds), line
-- The answer has a line for each event: "N <due>" added, "H <state> <due>" its key was used for it, "R" its key was used
-- for another event, "M" the recipient has too many categories. A recipient who has another version has one line, "C".
-- Atomic because an event without an entry in due would wait for ever, and a key without its event would lose it.
--
-- A recipient's field keyed has the days that have known keys, so that no others are looked at.

local details = {'email', 'name', 'locale', 'tz'}

-- complete sets the details of a recipient that it lacks.
local function complete(recipient, has, at)
  local fill = {}
  for n, field in ipairs(details) do
    if ARGV[at + n] ~= '' and (has[n] or '') == '' then
      fill[#fill + 1] = field
      fill[#fill + 1] = ARGV[at + n]
    end
  end
  if has.version and #fill == 0 then return end
  redis.call('HINCRBY', recipient, 'version', 1)
  redis.call('HSETNX', recipient, 'created', now)
  redis.call('HSET', recipient, 'updated', now, unpack(fill))
end

-- may_have notes that a recipient has events of a category. It returns false if there are too many.
local function may_have(recipient, category)
  if redis.call('HSETNX', recipient, 'c:' .. category, 1) == 0 then return true end
  if redis.call('HINCRBY', recipient, 'categories', 1) <= 32 then return true end
  redis.call('HDEL', recipient, 'c:' .. category)
  redis.call('HINCRBY', recipient, 'categories', -1)
  return false
end

local results, place, at = {}, 3, recipients
while at <= #ARGV do
  local recipient, lists, events = KEYS[place], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local has = redis.call('HMGET', recipient, 'email', 'name', 'locale', 'tz', 'version', 'keyed')
  has.version = has[5]
  if (has.version or '') ~= ARGV[at] then
    results[#results + 1] = 'C'
  else
    if not has.version then redis.call('ZADD', KEYS[1], 0, ARGV[at + 1]) end
    complete(recipient, has, at + 3)
    local days, names, first_today = {}, {}, true
    for day in string.gmatch(has[6] or '', '%d+') do
      local ago = today - day
      if ago <= 2 then names[#names + 1] = day end
      if ago >= -1 and ago <= 2 then days[#days + 1] = KEYS[place + 3 - ago] end
      first_today = first_today and ago ~= 0
    end
    for i = at + 8, at + 8 * events, 8 do
      local list, category, key, fingerprint, state, member, due, line = tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2],
        ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7]
      local first
      for n = 1, key == '' and 0 or #days do first = first or redis.call('HGET', days[n], key) end
      if first and string.sub(first, 1, 8) ~= fingerprint then
        results[#results + 1] = 'R'
      elseif first then
        results[#results + 1] = 'H ' .. string.sub(first, 9)
      elseif list > 0 and not may_have(recipient, category) then
        results[#results + 1] = 'M'
      else
        if list > 0 then
          list = KEYS[place + 4 + list]
          if redis.call('RPUSH', list, line) > tonumber(keep) then
            trim(list, tonumber(keep), 10)
            remember(list, retention)
          else
            redis.call('EXPIRE', list, retention)
          end
          if redis.call('ZADD', KEYS[2], 'LT', 'CH', due, member) == 0 then
            due = string.format('%.0f', redis.call('ZSCORE', KEYS[2], member))
          end
        end
        if key ~= '' then
          redis.call('HSET', KEYS[place + 3], key, fingerprint .. state .. ' ' .. due)
          if first_today then
            redis.call('EXPIRE', KEYS[place + 3], known)
            days[#days + 1], names[#names + 1], first_today = KEYS[place + 3], today, false
            redis.call('HSET', recipient, 'keyed', table.concat(names, ' '))
          end
        end
        results[#results + 1] = 'N ' .. due
      end
    end
  end
  place, at = place + 5 + lists, at + 8 + 8 * events
end
return table.concat(results, '\n')
