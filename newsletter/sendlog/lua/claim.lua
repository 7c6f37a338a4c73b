-- claim takes the next people of a chunk who wait, as a batch.
--
-- KEYS[1] log, KEYS[2] permission
-- ARGV: version from to last again most lease groups offsets...
--   version    the permission's, as the caller knows it; '' for any
--   from, to   the caller looked at all people from one offset up to the other, and found those in offsets
--   last       1: the chunk ends at to
--   again      Unix milliseconds from which the chunk is to be scanned again, for people between from and
--              to who were left out; '' if no one was
--   most       people of a batch
--   lease      milliseconds
--   groups     a letter a to p for each offset: the group in which the person is counted; '' if there are none
-- Answer: CLOSED
-- Answer: MOVED at
-- Answer: NONE at
-- Answer: BATCH at batch permission taken
--   CLOSED  permission is denied, or of another version
--   MOVED   others scanned further, or people were given back: look from at
--   NONE    nobody waits up to at
--   BATCH   taken are the offsets of the batch, separated by spaces; at is where the next one begins
-- Several scan a chunk, and some scan a part of it twice. So what one left out is noted with the part that
-- it scanned: in the field later, and in the field again once the chunk was scanned to its end.
-- Atomic because a person taken without a batch would never be given back.
local permission = redis.call('GET', KEYS[2])
if not permission or string.sub(permission, -1) ~= '1' then return CLOSED end
if version ~= '' and string.match(permission, '^%d+') ~= version then return CLOSED end
local counts = KEYS[1] .. ':counts'
local at = redis.call('HGET', counts, 'at') or '0'
if at ~= from then return MOVED end

local got, list, theirs, sums = {}, {'BITFIELD', KEYS[1]}, {'BITFIELD', KEYS[1] .. ':groups'}, {}
local n = #ARGV - offsets + 1
if n > 0 then
  local base = math.floor(tonumber(ARGV[offsets]) / 2)
  local log = redis.call('GETRANGE', KEYS[1], base, math.floor(tonumber(ARGV[#ARGV]) / 2))
  for i = offsets, #ARGV do
    local o = tonumber(ARGV[i])
    local b = string.byte(log, math.floor(o / 2) - base + 1) or 0
    if o % 2 == 0 then b = math.floor(b / 16) else b = b % 16 end
    if b == 0 then
      if #got == tonumber(most) then -- the rest is for the next one
        to, last = string.format('%d', o), ''
        break
      end
      got[#got + 1] = ARGV[i]
      for _, word in ipairs({'SET', 'u4', '#' .. ARGV[i], 1}) do list[#list + 1] = word end
      local group = string.byte(groups, i - offsets + 1)
      if group then
        group = group - 97
        for _, word in ipairs({'SET', 'u4', '#' .. ARGV[i], group}) do theirs[#theirs + 1] = word end
        sums[group] = (sums[group] or 0) + 1
      end
    end
  end
end
at = to
redis.call('HSET', counts, 'at', at)
if again ~= '' then note_earlier(counts, 'later', again) end
if last == '1' then
  local later = redis.call('HGET', counts, 'later')
  if later then note_earlier(counts, 'again', later) end
  redis.call('HDEL', counts, 'later')
  if redis.call('HEXISTS', counts, 'again') == 0 then redis.call('HSET', counts, 'done', '1') end
end
if #got == 0 then return NONE end
redis.call(unpack(list))
if groups ~= '' then redis.call(unpack(theirs)) end
for group, sum in pairs(sums) do redis.call('HINCRBY', counts, 'g' .. group .. ':taken', sum) end
local batch = redis.call('HINCRBY', counts, 'batch', 1)
redis.call('HINCRBY', counts, 'taken', #got)
local now = redis.call('TIME')
redis.call('ZADD', KEYS[1] .. ':batches', string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + lease), batch)
local taken = table.concat(got, ' ')
redis.call('SET', KEYS[1] .. ':batch:' .. batch, taken)
return BATCH
