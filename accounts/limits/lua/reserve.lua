-- Admits a message in each scope, or makes a reservation in the first that is full.
-- KEYS: limit:<scope> (hash) of each scope, in order
-- ARGV: test_now scopes...
--   test_now: empty for the clock of Redis
--   scopes: nine values of each scope, which the loop at the end names
-- Answer: OK
-- Answer: WAIT full at reason generations
--   full: number of the full scope, from 1   at: time of the reservation   reason: s, m, d or t   generations: the scopes' up to the full one; 0 if it took nothing
-- Atomic because two messages must never get the same reservation, and the rates of a scope count together or not at all.
--
-- The hash of a scope:
--   generation  replaced when the rate changes or a pause begins, which voids all reservations; spec: the rate of the generation
--   reserved_s, reserved_m, reserved_d  when the bucket of each rate will be full again, reservations included (the "theoretical arrival time" of
--               GCRA). Those of minute and day hold what the window allows, so they matter only after somebody came late
--   minute, day taken and reserved tokens, by step of the window: "step:count step:count…", oldest first, one window back from the last
--   flow_s, flow_m, flow_d  as reserved, but only of admitted messages, at their time: it holds back messages that come late together
--   pause, strikes, paced   end of the last pause; number of pauses in a row; recipients admitted or reserved since
--   last        the last reservation, for display

local SLACK = 10000           -- a message does not wait for 10 ms: coming back costs more
local GRACE = 10 * SECOND     -- how much messages with a reservation may bunch: queues look for due tasks every few seconds
local LAPSE = 3600 * SECOND   -- a reservation still holds so long after its time

local windows = {
  minute = {length = 60 * SECOND, step = SECOND},
  day = {length = 86400 * SECOND, step = 900 * SECOND},
}

local now = clock(test_now)
local n -- recipients of the message, in the scope that is looked at

local function parse(text)
  local log = {}
  for step, count in string.gmatch(text or '', '(%d+):(%S+)') do
    log[#log + 1] = {step = tonumber(step), count = tonumber(count)}
  end
  return log
end

local function render(log)
  local words = {}
  for i, e in ipairs(log) do words[i] = whole(e.step) .. ':' .. string.format('%.6g', e.count) end
  return table.concat(words, ' ')
end

-- freed is when the tokens of a step begin to come back: a window after the last of them can have been taken. It takes a step until all
-- are back.
local function freed(w, e) return (e.step + 1) * w.step + w.length end

-- window_opens is when a window has room for n, on top of all that was reserved.
local function window_opens(w, log, limit)
  local used = 0
  for _, e in ipairs(log) do used = used + e.count end
  local missing = used + math.min(n, limit) - limit
  if missing <= 0 then return now end
  for _, e in ipairs(log) do
    if missing <= e.count then return freed(w, e) + missing / e.count * w.step end
    missing = missing - e.count
  end
  return freed(w, log[#log]) + w.step
end

-- window_add notes n for a time, and forgets what has come back by then. The amount beyond the limit is owed:
-- it is as if the whole limit had been taken, as much later as paying takes.
local function window_add(w, log, limit, at)
  if n > limit then at = at + (n / limit - 1) * w.length end
  local step, count = math.floor(at / w.step), math.min(n, limit)
  local kept = {}
  for _, e in ipairs(log) do
    if freed(w, e) + w.step > at then kept[#kept + 1] = e end
  end
  local last = kept[#kept]
  if last and last.step >= step then
    last.count = last.count + count
  else
    kept[#kept + 1] = {step = step, count = count}
  end
  return kept
end

-- without_future drops reservations from a window.
local function without_future(w, log)
  local kept = {}
  for _, e in ipairs(log) do
    if e.step * w.step <= now then kept[#kept + 1] = e end
  end
  return kept
end

-- bucket is a rate as GCRA has it: microseconds a token takes, and tokens it holds.
local function bucket(limit, length, size)
  if limit > 0 then return {each = length / limit, size = size} end
end

-- bucket_opens is when a bucket that is full again at full has room for n.
local function bucket_opens(b, full) return full + (math.min(n, b.size) - b.size) * b.each end

local function bucket_add(b, full, at) return math.max(full, at) + n * b.each end

-- open reads a scope, and begins a new generation when its rate is not the one of the last.
local function open(key, second, minute, day, burst)
  local m = redis.call('HMGET', key, 'generation', 'spec', 'minute', 'day', 'reserved_s', 'reserved_m', 'reserved_d', 'flow_s', 'flow_m', 'flow_d',
    'pause', 'paced', 'last')
  local spec = table.concat({second, minute, day, burst}, ' ')
  second, minute, day, burst = tonumber(second), tonumber(minute), tonumber(day), tonumber(burst)
  if burst == 0 then burst = math.max(1, second) end
  local s = {
    key = key, generation = tonumber(m[1] or 0), pause = tonumber(m[11] or 0), paced = tonumber(m[12] or 0), last = tonumber(m[13] or 0),
    limits = {minute = minute, day = day}, logs = {minute = parse(m[3]), day = parse(m[4])},
    buckets = {
      s = bucket(second, SECOND, burst), m = bucket(minute, windows.minute.length, minute), d = bucket(day, windows.day.length, day),
    },
    reserved = {s = tonumber(m[5] or 0), m = tonumber(m[6] or 0), d = tonumber(m[7] or 0)},
    flow = {s = tonumber(m[8] or 0), m = tonumber(m[9] or 0), d = tonumber(m[10] or 0)},
    spec = spec,
  }
  if m[2] == s.spec then return s end
  s.generation, s.changed, s.last = math.max(now, s.generation + 1), true, 0
  for name, full in pairs(s.flow) do
    local b = s.buckets[name]
    s.flow[name] = b and math.min(full, now + b.size * b.each) or 0
    s.reserved[name] = s.flow[name]
  end
  for name, w in pairs(windows) do s.logs[name] = without_future(w, s.logs[name]) end
  return s
end

-- pace_at is how many recipients have been admitted at a time after a pause, if all the pace allows went.
local POOL = FIRST * (DOUBLING / SECOND) / math.log(2)
local function pace_at(s, at) return POOL * (2 ^ ((at - s.pause) / DOUBLING) - 1) end

local function throttled(s) return now < s.pause + OVER end

-- pace_opens is when the next one may go after a pause.
local function pace_opens(s)
  if now >= s.pause and pace_at(s, now) >= s.paced then return now end
  return s.pause + DOUBLING * math.log(1 + s.paced / POOL) / math.log(2)
end

-- next_free is the first time at which all rates of a scope have room, and which of them was the last to.
local function next_free(s)
  local at, reason = now, ''
  local function consider(time, why)
    if time > at then at, reason = time, why end
  end
  for name, b in pairs(s.buckets) do consider(bucket_opens(b, math.max(s.reserved[name], s.flow[name])), name) end
  for name, w in pairs(windows) do
    if s.limits[name] > 0 then consider(window_opens(w, s.logs[name], s.limits[name]), string.sub(name, 1, 1)) end
  end
  if throttled(s) then consider(pace_opens(s), 't') end
  return math.ceil(at), reason
end

-- reserve takes what a message needs at a time.
local function reserve(s, at)
  for name, b in pairs(s.buckets) do s.reserved[name] = bucket_add(b, math.max(s.reserved[name], s.flow[name]), at) end
  for name, w in pairs(windows) do
    if s.limits[name] > 0 then s.logs[name] = window_add(w, s.logs[name], s.limits[name], at) end
  end
  if throttled(s) then s.paced = math.max(s.paced, pace_at(s, math.max(at, s.pause))) + n end
  s.changed = true
end

-- go lets a message with a reservation out.
local function go(s)
  for name, b in pairs(s.buckets) do s.flow[name] = bucket_add(b, s.flow[name], now) end
  s.changed = true
end

-- flows says whether messages with a reservation come about as fast as they should.
local function flows(s)
  for name, b in pairs(s.buckets) do
    if bucket_opens(b, s.flow[name]) > now + GRACE then return false end
  end
  return true
end

-- exact keeps fractions of a microsecond: they add up where a token takes few.
local function exact(x) return string.format('%.2f', x) end

local function save(s)
  if not s.changed then return end
  local ends = math.max(now, s.last, s.pause + OVER)
  for name, full in pairs(s.flow) do ends = math.max(ends, full, s.reserved[name]) end
  for name, w in pairs(windows) do
    local log = s.logs[name]
    if #log > 0 then ends = math.max(ends, freed(w, log[#log]) + w.step) end
  end
  redis.call('HSET', s.key, 'generation', whole(s.generation), 'spec', s.spec, 'minute', render(s.logs.minute), 'day', render(s.logs.day),
    'reserved_s', exact(s.reserved.s), 'reserved_m', exact(s.reserved.m), 'reserved_d', exact(s.reserved.d),
    'flow_s', exact(s.flow.s), 'flow_m', exact(s.flow.m), 'flow_d', exact(s.flow.d),
    'paced', string.format('%.17g', s.paced), 'last', whole(s.last))
  expire(s.key, ends - now + LAPSE)
end

-- pass admits the message in a scope: nothing when it did, otherwise when to come back and why. A scope that takes last has taken nothing
-- then: s.takes is when it would.
local function pass(s, has, generation, at)
  if has ~= '' and generation == s.generation then
    if has == 'p' then return end
    if at > now + SLACK then return at, '' end
    if at + LAPSE > now and flows(s) then return go(s) end
  end
  local at, reason = next_free(s)
  if s.last_to_take and at <= now + SLACK then
    s.takes = at
    return
  end
  reserve(s, at)
  if at <= now + SLACK then return go(s) end
  s.last = math.max(s.last, at)
  return at, reason
end

-- For each scope: recipients per second, minute and day, and burst (0 if not bounded); the message's
-- recipients; 1 if it takes last, when all others admit the message, so that a message that waits elsewhere
-- takes nothing here; the message's share there ('' for none, p if it has passed the scope, b for a
-- reservation), its generation and time.
local generations, takers = {}, {}
for full, key in ipairs(KEYS) do
  local from = scopes + (full - 1) * 9
  local second, minute, day, burst, count, last, has, generation, reserved_at = unpack(ARGV, from, from + 8)
  local s = open(key, second, minute, day, burst)
  s.n, s.last_to_take = tonumber(count), last == '1'
  n = s.n
  local at, reason = pass(s, has, tonumber(generation), tonumber(reserved_at))
  if s.takes then
    takers[#takers + 1] = s
    generations[full] = '0'
  else
    save(s)
    generations[full] = whole(s.generation)
  end
  if at then
    at = whole(at)
    return WAIT
  end
end
for _, s in ipairs(takers) do
  n = s.n
  reserve(s, s.takes)
  go(s)
  save(s)
end
return OK
