-- want.lua asks for a rebuild of the search index, unless one is wanted or runs. In one step, so that two who ask get one.
--
-- KEYS[1]  the rebuild, JSON
-- ARGV[1]  the rebuild that is wanted, JSON
-- ARGV[2]  how long it is remembered, ms
-- Returns the rebuild there is now, JSON.
local there = redis.call('GET', KEYS[1])
if there then
  local ok, rebuild = pcall(cjson.decode, there)
  if ok and (rebuild.status == 'wanted' or rebuild.status == 'running') then
    return there
  end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
