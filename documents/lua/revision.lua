-- revision.lua gives a number higher than any it gave before, even after this key was lost: the time, or one more than the last.
-- It is asked for before messages are read; whoever reads later has the higher number, and so the last word.
--
-- KEYS[1]  the last revision
-- Returns the next one, as a string: microseconds fit into a double, but Redis would cut them down when it converts them.
local now = redis.call('TIME')
local next = tonumber(now[1]) * 1000000 + tonumber(now[2])
local last = tonumber(redis.call('GET', KEYS[1]) or 0)
if next <= last then
  next = last + 1
end
next = string.format('%.0f', next)
redis.call('SET', KEYS[1], next)
return next
