-- tidy.lua removes consumers of a group that are gone, if they hold nothing. Deleting a consumer forgets what
-- it holds, so looking and deleting must be one step.
--
-- KEYS[1]  the stream
-- ARGV: group idle_most consumer_name
--   idle_most: remove consumers not heard of for this many milliseconds
--   consumer_name: and, however recent, this one; empty for none
-- Returns the number of consumers removed.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
local removed = 0
for _, fields in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], group)) do
  local consumer = {}
  for i = 1, #fields, 2 do
    consumer[fields[i]] = fields[i + 1]
  end
  local gone = consumer['name'] == consumer_name or tonumber(consumer['idle']) > tonumber(idle_most)
  if gone and tonumber(consumer['pending']) == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], group, consumer['name'])
    removed = removed + 1
  end
end
return removed
