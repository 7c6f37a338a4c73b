-- extend renews the leases that one process holds in this partition.
--
-- KEYS[1] any key of the partition
-- ARGV: lease_until held...
--   held  pairs of id and fence
-- Result the pairs whose lease is lost
-- Atomic per message: a lease taken over between check and write would be renewed for its former holder.

local lost = {}
for i = held, #ARGV, 2 do
  local id = ARGV[i]
  local m = redis.call('HMGET', message_key(id), 'state', 'fence', 'lease', 'lane', 'created', 'account')
  if m[1] == 'active' and m[2] == ARGV[i + 1] then
    if tonumber(m[3]) < tonumber(lease_until) then -- else a later call came first
      redis.call('HSET', message_key(id), 'lease', lease_until)
      redis.call('ZADD', prefix .. 'leases', lease_until, leased(id, {lane = m[4], created = m[5], account = m[6]}))
    end
  else
    lost[#lost + 1], lost[#lost + 2] = id, ARGV[i + 1]
  end
end
return lost
