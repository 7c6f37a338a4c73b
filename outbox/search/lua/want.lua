-- want requests a rebuild of the search index, unless one is requested or running.
--
-- KEYS[1] the rebuild, JSON
-- ARGV: wanted lifetime
--   wanted    the requested rebuild, JSON
--   lifetime  milliseconds
-- Result the current rebuild, JSON
-- Atomic so that two requests make one rebuild.

local current = redis.call('GET', KEYS[1])
if current then
  local ok, rebuild = pcall(cjson.decode, current)
  if ok and (rebuild.status == 'wanted' or rebuild.status == 'running') then
    return current
  end
end
redis.call('SET', KEYS[1], wanted, 'PX', lifetime)
return wanted
