-- reserve counts messages of a day before they are sent without a record: as many as the quotas have room for.
--
-- KEYS[1] any key of the partition
-- ARGV: account token day quotas partitions most
--   token, day, quotas, partitions   as for accept.lua
-- Answer: TAKEN messages
-- Answer: OVER first
--   TAKEN   messages were counted: at least one, at most most. There may be room for a few more
--   OVER    a quota has no room: as for accept.lua
-- Atomic because two campaigns would count the same room.
local messages = tonumber(most)
local first = quotas ~= '' and over(quotas, partitions, account, messages, day, messages)
while first and messages > 1 do
  messages = math.floor(messages / 2)
  first = over(quotas, partitions, account, messages, day, messages)
end
if first then return OVER end
count_day(day, account, messages)
if token ~= '' then count_day(day, 'token:' .. token, messages) end
return TAKEN
