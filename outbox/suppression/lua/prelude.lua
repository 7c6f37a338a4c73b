-- Functions and values that the scripts of suppressions share. KEYS[1] is suppression:counts of the shard. All other keys have its prefix, so
-- they are in the same slot. Times are eight hexadecimal digits, which compare as text.

local ROOT = string.sub(KEYS[1], 1, -#'counts' - 1)
local GROUP = 16 -- buckets that share a bit of the indexes

local function bucket_key(bucket) return ROOT .. 'bucket:' .. bucket end
local function evidence_key(bucket) return ROOT .. 'evidence:' .. bucket end
local function group_of(bucket) return math.floor(tonumber(bucket) / GROUP) end

-- ended reports whether an entry has expired.
local function ended(expires, now) return expires ~= '' and expires <= now end

-- read returns the parts of a record: reason, created, expires, sign, source.
local function read(record) return string.match(record, '^(.)(%x%x%x%x%x%x%x%x)(%x*)([,+])(.*)$') end

-- scope_of returns the scope in the name of an entry.
local function scope_of(bucket, field)
  local name = field
  if string.sub(field, 1, 1) == '#' and not string.find(field, '@', 1, true) then
    name = redis.call('HGET', evidence_key(bucket), field) or ''
  end
  return string.match(name, '^([al]:.*) [^ ]*$') or 'i'
end

-- changes sums the entries added (1) and removed (-1), by index: the reason and the scope, and the reason and all scopes.
local changes = {}
local function count(reason, scope, by)
  for _, s in ipairs({scope, '*'}) do
    local index = reason .. ':' .. s
    changes[index] = (changes[index] or 0) + by
  end
end

-- write_counts adds changes to the counts. An empty index is deleted.
local function write_counts()
  for index, by in pairs(changes) do
    if by ~= 0 and redis.call('HINCRBY', KEYS[1], index, by) <= 0 then
      redis.call('HDEL', KEYS[1], index)
      redis.call('DEL', ROOT .. 'index:' .. index)
    end
  end
end

-- indexes_of returns the indexes of a group's entries, and whether any entry expires.
local function indexes_of(group)
  local there, expiring = {}, false
  for bucket = group * GROUP, group * GROUP + GROUP - 1 do
    local all = redis.call('HGETALL', bucket_key(bucket))
    for i = 1, #all, 2 do
      local scope = scope_of(bucket, all[i])
      for record in string.gmatch(all[i + 1], '[^;]+') do
        local reason, _, expires = read(record)
        there[reason .. ':' .. scope], there[reason .. ':*'] = true, true
        expiring = expiring or expires ~= ''
      end
    end
  end
  return there, expiring
end

-- unmark removes a group from the indexes in which it has no more entries.
local function unmark(group)
  local there, expiring = indexes_of(group)
  for index, by in pairs(changes) do
    if by < 0 and not there[index] then redis.call('SETBIT', ROOT .. 'index:' .. index, group, 0) end
  end
  if not expiring then redis.call('SETBIT', ROOT .. 'expiring', group, 0) end
end
