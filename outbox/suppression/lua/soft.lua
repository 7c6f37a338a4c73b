-- Counts the messages to an address that were given up for a passing reason, or that came back by mail.
-- KEYS[1] suppression:soft:<field> or suppression:said:<reason>:<field> (string)
-- ARGV: now since tag enough keep_for
--   since: earlier messages do not count   tag: six characters of the message   enough: number to keep   keep_for: seconds
-- Result: number of messages, this one included.
-- Atomic because two messages must not both read the same string.
--
-- The string has 14 characters of each message: the time and the tag. A message reported twice counts once.
local kept = {}
for at, message in string.gmatch(redis.call('GET', KEYS[1]) or '', '(........)(......)') do
  if at > since and message ~= tag then kept[#kept + 1] = at .. message end
end
kept[#kept + 1] = now .. tag
while #kept > tonumber(enough) do table.remove(kept, 1) end
redis.call('SET', KEYS[1], table.concat(kept), 'EX', keep_for)
return #kept
