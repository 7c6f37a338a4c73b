-- Stores the key of a domain, unless somebody changed it since it was read.
-- KEYS[1] dkim:<domain> (string)   KEYS[2] dkim (sorted set)   KEYS[3] dkim:version
-- ARGV[1] domain   ARGV[2] record as it was read, empty for none   ARGV[3] record (JSON)
-- Result: 1 if stored, 0 if somebody else was first.
-- Atomic so that no change is lost to another, and no changed key goes unnoticed by other processes. Running it twice is the same as once.
local have = redis.call('GET', KEYS[1]) or ''
if have == ARGV[3] then
  return 1
end
if have ~= ARGV[2] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[3])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('INCR', KEYS[3])
return 1
