-- again puts facts that are due back into the inbox, to be looked up again.
--
-- KEYS[1] facts that wait, by the time they are due   KEYS[2] the stream
-- ARGV: now most
-- Result how many
-- Atomic because otherwise two processes put the same fact back, and one that dies between the two writes loses it.

local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, most)
for _, fact in ipairs(due) do
  redis.call('XADD', KEYS[2], '*', 'f', fact)
  redis.call('ZREM', KEYS[1], fact)
end
return #due
