-- soft counts the messages that an address refused for a while.
--
-- KEYS: 1 suppression:soft:<field>
-- ARGV: 1 now, 2 since when they count, 3 six characters that stand for the message, 4 how many are enough, 5 seconds to keep them
-- Result: how many there were, this one included
-- Atomic, because two of them must not both read the same.
--
-- The string holds 14 characters for each: the time and the message. The same message told again counts once.

local kept = {}
for at, message in string.gmatch(redis.call('GET', KEYS[1]) or '', '(........)(......)') do
  if at > ARGV[2] and message ~= ARGV[3] then kept[#kept + 1] = at .. message end
end
kept[#kept + 1] = ARGV[1] .. ARGV[3]
while #kept > tonumber(ARGV[4]) do table.remove(kept, 1) end
redis.call('SET', KEYS[1], table.concat(kept), 'EX', ARGV[5])
return #kept
