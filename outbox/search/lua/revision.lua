-- revision gives a number higher than any before, even after this key was lost: the time, or one more than the last.
-- It is taken before messages are read: a later reading has the higher number, and replaces the earlier one.
--
-- KEYS[1] the last revision
-- Result the next one, as a text: microseconds fit into a double, but Redis would truncate them when it converts them

local now = redis.call('TIME')
local next = tonumber(now[1]) * 1000000 + tonumber(now[2])
local last = tonumber(redis.call('GET', KEYS[1]) or 0)
if next <= last then
  next = last + 1
end
next = string.format('%.0f', next)
redis.call('SET', KEYS[1], next)
return next
