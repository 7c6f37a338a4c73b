-- tidy.lua removes consumers of a group that are gone, and only when they hold nothing: deleting a consumer forgets what it holds, so
-- looking and deleting must be one step.
--
-- KEYS[1]  the stream
-- ARGV[1]  the group
-- ARGV[2]  remove consumers not heard of for this many milliseconds
-- ARGV[3]  and, however recent, the consumer of this name; empty: none
-- Returns the number of consumers removed.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
local removed = 0
for _, fields in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local consumer = {}
  for i = 1, #fields, 2 do
    consumer[fields[i]] = fields[i + 1]
  end
  local gone = consumer['name'] == ARGV[3] or tonumber(consumer['idle']) > tonumber(ARGV[2])
  if gone and tonumber(consumer['pending']) == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer['name'])
    removed = removed + 1
  end
end
return removed
