-- open begins a run: the waiting events of its categories become its snapshot.
--
-- KEYS[1] recipient, KEYS[2] due, KEYS[3] open, KEYS[4] fences, KEYS[5] run, KEYS[6] runs of the recipient, KEYS[7] runs
-- of the account, KEYS[8...] lists of the categories
-- ARGV: member fence version now lease run reason seconds lasts fields schedule later categories...
--   member      the caller's member of open; '' if somebody asked for this run
--   version     the recipient's, as the caller knows it
--   run         its id
--   reason      why no mail is sent; '' if it is
--   seconds     that a run is kept
--   lasts       JSON: fields of the recipient that note the period
--   fields      JSON: fields of the run
--   schedule    the member of due for its categories that are not in this run, due at the time later; '' if there are none
--   categories  in the order of KEYS
-- Answer: STALE
-- Answer: CHANGED
-- Answer: AGAIN
-- Answer: OPENED fence events
--   STALE    the lease is another's
--   AGAIN    there is a run of this period
-- Atomic because events must be in one run only, and a period have one run.
if member ~= '' and redis.call('HGET', KEYS[4], member) ~= fence then return STALE end
if redis.call('HGET', KEYS[1], 'version') ~= version then return CHANGED end
if redis.call('EXISTS', KEYS[5]) == 1 then return AGAIN end
local taken = string.gsub(KEYS[5], ':digest%-run:', ':digest-taken:', 1)
local events, names = 0, {}
for i = categories, #ARGV do
  local list = KEYS[8 + i - categories]
  local snapshot = taken .. ':' .. #names
  if rename(list, snapshot) then
    events = events + waits(snapshot)
    names[#names + 1] = ARGV[i]
  end
  redis.call('HDEL', KEYS[1], 'c:' .. ARGV[i])
end
local kept = 0
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do if string.sub(field, 1, 2) == 'c:' then kept = kept + 1 end end
redis.call('HSET', KEYS[1], 'categories', kept)
for field, value in pairs(cjson.decode(lasts)) do
  if value == '' then redis.call('HDEL', KEYS[1], field) else redis.call('HSET', KEYS[1], field, value) end
end
local state = 'processing'
if events == 0 then reason = 'empty' end
if reason ~= '' then state = 'skipped' end
if member == '' and state == 'processing' then state = 'pending' end
local record = {'state', state, 'reason', reason, 'events', events, 'taken', #names == 0 and '[]' or cjson.encode(names), 'lists', #names}
local function note(field, value) record[#record + 1], record[#record + 2] = field, value end
if state ~= 'pending' then
  note('attempts', 1)
  note('started', now)
end
for field, value in pairs(cjson.decode(fields)) do note(field, value) end
redis.call('HSET', KEYS[5], unpack(record))
redis.call('ZADD', KEYS[6], now, run)
redis.call('EXPIRE', KEYS[6], seconds)
local gone = '(' .. string.format('%.0f', now - seconds * 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', gone)
local states = {'pending', 'processing', 'submitted', 'sent', 'failed', 'skipped'} -- one in turn, as old ones do no harm
redis.call('ZREMRANGEBYSCORE', KEYS[7] .. ':' .. states[tonumber(now) % #states + 1], '-inf', gone)
index(KEYS[7], '', state, run, now)
if schedule ~= '' then redis.call('ZADD', KEYS[2], 'LT', later, schedule) end
if member ~= '' then
  redis.call('ZREM', KEYS[3], member)
  redis.call('HDEL', KEYS[4], member)
end
-- A run that is skipped stays open until its event is emitted.
local held = 'run ' .. run
fence = grant(KEYS[4], held)
redis.call('ZADD', KEYS[3], member == '' and now or lease, held)
return OPENED
