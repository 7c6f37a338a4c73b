-- follow takes messages out of an account's backlog, as many as the window has room for. finish.lua does so
-- for each message that leaves. This script is for messages whose process died.
--
-- KEYS[1] any key of the partition
-- ARGV: lane account now window
-- Rows: id lane epoch due
--   the tasks to enqueue
-- Atomic per message: an operator may cancel it at this moment.

local at, woken, due = {lane = lane, account = account}, {}, now
local following = follow(at, redis.call('ZCARD', backlog_key(at)), window, 1, now)
for i = 1, #following, 2 do
  local id, epoch = following[i], following[i + 1]
  woken[#woken + 1] = ROW
end
if redis.call('ZCARD', backlog_key(at)) == 0 then redis.call('SREM', prefix .. 'backlogs', lane .. ' ' .. account) end
return woken
