-- claim gives a worker due schedules, and schedules that others held for too long.
--
-- KEYS[1] due, KEYS[2] open, KEYS[3] fences
-- ARGV: now lease most
--   lease  Unix milliseconds at which it ends
-- Rows: member fence
--   A member of open is "<time due> <member of due>", or "run <id>".
-- Atomic because an entry that is in neither due nor open would be forgotten.
local claimed = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, most)
local due = {}
if #claimed < tonumber(most) then
  due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, most - #claimed)
end
for i = 1, #due, 2 do
  redis.call('ZREM', KEYS[1], due[i])
  claimed[#claimed + 1] = string.format('%.0f', due[i + 1]) .. ' ' .. due[i]
end
local rows = {}
for _, member in ipairs(claimed) do
  local fence = grant(KEYS[3], member)
  redis.call('ZADD', KEYS[2], lease, member)
  rows[#rows + 1] = ROW
end
return rows
