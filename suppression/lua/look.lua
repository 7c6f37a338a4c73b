-- What scripts share that ask the suppressions themselves, and those that add entries. Such scripts run only where keys of all partitions may
-- stand in one script: see Store.Look.
--
-- The version is raised by whatever adds entries, in the same step. So where nobody was stopped at a version, nobody is at that same version:
-- what expires or is removed only frees.

-- begin_version gives a version that is not there, or was lost, a number that it never had: the microseconds of the server, which it is raised
-- less often than.
local function begin_version(key)
  local now = redis.call('TIME')
  local version = now[1] .. string.format('%06d', now[2])
  redis.call('SET', key, version)
  return version
end

-- unstopped answers the version if there is nothing in the hashes KEYS[at + 1] and on, and nothing where there is. The fields to look at, so
-- many of each hash, are in ARGV[from] and on; the version is KEYS[at].
local function unstopped(at, from, fields)
  for i = at + 1, #KEYS do
    for _, found in ipairs(redis.call('HMGET', KEYS[i], unpack(ARGV, from, from + fields - 1))) do
      if found then return nil end
    end
    from = from + fields
  end
  return redis.call('GET', KEYS[at]) or begin_version(KEYS[at])
end
