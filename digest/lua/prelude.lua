-- A category's events are a list of lines, oldest first. A line is a JSON array: whether it was returned (0
-- or 1), id (20 characters), entity type, entity id, time in milliseconds, priority (0 to 3), the actor's id,
-- name and URL, title, URL, payload. Events beyond digest.keep are folded into the hash <list>:older, by the
-- entity's type and id: "<count> <first> <last> <priority> <different actors> <bytes of actors> <actors><line
-- of the last event>". Actors are a JSON array of the latest three. Its field n counts all, and returned
-- exists if events were returned. <list>:actors (set) has a 12-digit hash of each group and actor that the
-- groups count. digest/run.go makes the same.

-- most_actors bounds <list>:actors. Actors beyond are not counted.
local most_actors = 100000

-- parts returns the numbers of a group, its actors and the line of its last event.
local function parts(value)
  local n, first, last, priority, different, size, at = string.match(value, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ()')
  size = tonumber(size)
  return tonumber(n), tonumber(first), tonumber(last), tonumber(priority), tonumber(different),
    cjson.decode(string.sub(value, at, at + size - 1)), string.sub(value, at + size)
end

-- text is the inverse of parts.
local function text(n, first, last, priority, different, actors, line)
  local texts = #actors == 0 and '[]' or cjson.encode(actors)
  return string.format('%d %.0f %.0f %d %d %d ', n, first, last, priority, different, #texts) .. texts .. line
end

-- digits returns a text's digits in <list>:actors.
local function digits(text) return string.sub(redis.sha1hex(text), 1, 12) end

-- known_by returns what tells actors apart.
local function known_by(actor) return actor[1] ~= '' and actor[1] or actor[2] end

-- latest returns up to three actors: the first list's, then any from the second that the first lacks.
local function latest(newer, older)
  local all = {}
  for _, list in ipairs({newer, older}) do
    for _, actor in ipairs(list) do
      local there = #all >= 3
      for _, other in ipairs(all) do there = there or known_by(other) == known_by(actor) end
      if not there then all[#all + 1] = actor end
    end
  end
  return all
end

-- counted returns a group with one more line. differs is 1 if its actor is new.
local function counted(old, line, event, differs)
  local n, first, last, priority, different, actors, newest = 0, event[5], event[5], 0, 0, {}, line
  if old then n, first, last, priority, different, actors, newest = parts(old) end
  if event[5] >= last then newest = line end
  local who = {{event[7], event[8], event[9]}}
  if known_by(who[1]) == '' then who = {} end
  return text(n + 1, math.min(first, event[5]), math.max(last, event[5]), math.max(priority, event[6]), different + differs,
    latest(who, actors), newest)
end

-- fold moves a line into the groups of a list.
local function fold(list, line)
  local event = cjson.decode(line)
  if event[1] == 1 then redis.call('HSET', list .. ':older', 'returned', 1) end
  redis.call('HINCRBY', list .. ':older', 'n', 1)
  local group, actors, differs = event[3] .. '\0' .. event[4], list .. ':actors', 0
  local who = known_by({event[7], event[8]})
  if who ~= '' then
    local member = digits(group) .. digits(who)
    if redis.call('SCARD', actors) < most_actors then differs = redis.call('SADD', actors, member) end
  end
  local old = redis.call('HGET', list .. ':older', group)
  redis.call('HSET', list .. ':older', group, counted(old, line, event, differs))
end

-- trim folds the oldest lines of a list that has more than keep.
local function trim(list, keep, most)
  local over = math.min(redis.call('LLEN', list) - keep, most)
  for _ = 1, over do fold(list, redis.call('LPOP', list)) end
end

-- remember gives a list's waiting events their lifetime, in seconds.
local function remember(list, seconds)
  redis.call('EXPIRE', list, seconds)
  redis.call('EXPIRE', list .. ':older', seconds)
  redis.call('EXPIRE', list .. ':actors', seconds)
end

-- waits returns how many events a list has, folded ones too.
local function waits(list) return redis.call('LLEN', list) + tonumber(redis.call('HGET', list .. ':older', 'n') or 0) end

-- rename moves a list with its groups. It returns whether there was one.
local function rename(from, to)
  local found = false
  for _, part in ipairs({'', ':older', ':actors'}) do
    if redis.call('EXISTS', from .. part) == 1 then
      redis.call('RENAME', from .. part, to .. part)
      redis.call('PERSIST', to .. part)
      found = found or part ~= ':actors'
    end
  end
  return found
end

local function drop(list) redis.call('DEL', list, list .. ':older', list .. ':actors') end

-- grant gives a held schedule to a worker, with a new fence. A worker that held it earlier, ended it, and
-- comes late when it is open again, must not be mistaken for its holder.
local function grant(fences, held)
  local fence = redis.call('HINCRBY', fences, 'granted', 1)
  redis.call('HSET', fences, held, fence)
  return fence
end

-- index moves a run from one state's index to another's; '' means none.
local function index(runs, from, to, run, time)
  if from ~= '' then redis.call('ZREM', runs .. ':' .. from, run) end
  redis.call('ZADD', runs .. ':' .. to, time, run)
end

-- merge adds a snapshot's groups, which are older, to a list's groups.
local function merge(snapshot, list)
  local both = {}
  for _, member in ipairs(redis.call('SMEMBERS', snapshot .. ':actors')) do
    if redis.call('SADD', list .. ':actors', member) == 0 then
      local group = string.sub(member, 1, 12)
      both[group] = (both[group] or 0) + 1
    end
  end
  local groups = redis.call('HGETALL', snapshot .. ':older')
  for i = 1, #groups, 2 do
    local group, value = groups[i], groups[i + 1]
    local there = redis.call('HGET', list .. ':older', group)
    if there and group ~= 'n' then
      local n, first, last, priority, different, actors, line = parts(value)
      local n2, first2, last2, priority2, different2, actors2, line2 = parts(there)
      if last2 >= last then line = line2 end
      value = text(n + n2, math.min(first, first2), math.max(last, last2), math.max(priority, priority2),
        different + different2 - (both[digits(group)] or 0), latest(actors2, actors), line)
    end
    if group == 'n' then redis.call('HINCRBY', list .. ':older', 'n', value) else redis.call('HSET', list .. ':older', group, value) end
  end
  if #groups > 0 then redis.call('HSET', list .. ':older', 'returned', 1) end
end
