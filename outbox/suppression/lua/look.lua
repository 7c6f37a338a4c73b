-- Functions of scripts that check the suppressions, and of scripts that add entries. Such scripts run only
-- where one script may use keys of all partitions: see Store.Look.
--
-- Every script that adds entries raises the version in the same step. So if no recipient was stopped under a
-- version, none is while it is the same: an entry that expires or is removed only frees recipients.

-- begin_version sets a version that is missing, or was lost, to a number that it never had: the microseconds of the server. It is raised less
-- often than that.
local function begin_version(key)
  local now = redis.call('TIME')
  local version = now[1] .. string.format('%06d', now[2])
  redis.call('SET', key, version)
  return version
end

-- unstopped returns the version, KEYS[at], if the hashes KEYS[at + 1] and on have none of the fields, else nil. ARGV[from] and on are the
-- fields: the same number of each hash.
local function unstopped(at, from, fields)
  for i = at + 1, #KEYS do
    for _, found in ipairs(redis.call('HMGET', KEYS[i], unpack(ARGV, from, from + fields - 1))) do
      if found then return nil end
    end
    from = from + fields
  end
  return redis.call('GET', KEYS[at]) or begin_version(KEYS[at])
end
