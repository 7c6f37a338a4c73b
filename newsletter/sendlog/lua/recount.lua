-- recount compares the counters of a chunk, and of its people's groups, with its states and bits, and
-- replaces counters that differ.
--
-- KEYS[1] log
-- ARGV: bits...
-- Answer: OK changed
-- !Atomic because states may change in between.
local counts, changed = KEYS[1] .. ':counts', 0
local log, groups = redis.call('GET', KEYS[1]) or '', redis.call('GET', KEYS[1] .. ':groups')

local function put(field, n)
  if tonumber(redis.call('HGET', counts, field) or '0') ~= n then
    redis.call('HSET', counts, field, n)
    changed = changed + 1
  end
end

local function put_states(prefix, sums)
  local taken = 0
  for s = 1, 15 do taken = taken + (sums[s] or 0) end
  for s = 3, 15 do put(prefix .. s, sums[s] or 0) end
  put(prefix .. 'taken', taken)
end

local sums, of = {}, {} -- people by state; and by group and state
for g = 0, 15 do of[g] = {} end
for i = 1, #log do
  local b, g = string.byte(log, i), groups and string.byte(groups, i) or 0
  local high, low = math.floor(b / 16), b % 16
  sums[high] = (sums[high] or 0) + 1
  sums[low] = (sums[low] or 0) + 1
  if groups then
    local first, second = of[math.floor(g / 16)], of[g % 16]
    first[high] = (first[high] or 0) + 1
    second[low] = (second[low] or 0) + 1
  end
end
put_states('', sums)
for g = 0, groups and 15 or -1 do put_states('g' .. g .. ':', of[g]) end

for i = bits, #ARGV do
  put(ARGV[i], redis.call('BITCOUNT', KEYS[1] .. ':' .. ARGV[i]))
  if groups then
    local set, has = redis.call('GET', KEYS[1] .. ':' .. ARGV[i]) or '', {}
    for at = 1, #set do
      local b, place = string.byte(set, at), (at - 1) * 4
      for pair = 1, b > 0 and 4 or 0 do -- two people of each byte of groups
        local two = math.floor(b / 4 ^ (4 - pair)) % 4
        if two > 0 then
          local g = string.byte(groups, place + pair) or 0
          if two > 1 then has[math.floor(g / 16)] = (has[math.floor(g / 16)] or 0) + 1 end
          if two % 2 == 1 then has[g % 16] = (has[g % 16] or 0) + 1 end
        end
      end
    end
    for g = 0, 15 do put('g' .. g .. ':' .. ARGV[i], has[g] or 0) end
  end
end
return OK
