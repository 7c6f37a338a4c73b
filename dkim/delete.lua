-- Deletes the key of a domain.
-- KEYS[1] dkim:<domain> (string)   KEYS[2] dkim (sorted set)   KEYS[3] dkim:version
-- ARGV[1] domain
-- Result: 1 if there was one, else 0.
-- Atomic so that a key which is gone is in no list, and never one that other processes were not told to forget.
if redis.call('DEL', KEYS[1]) == 0 then
  return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('INCR', KEYS[3])
return 1
