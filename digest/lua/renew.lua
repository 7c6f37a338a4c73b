-- renew makes leases longer.
--
-- KEYS[1] open, KEYS[2] fences
-- ARGV: lease held...
--   held  member and fence of each
-- Answer: RENEWED
for i = held, #ARGV, 2 do
  if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[i + 1] then redis.call('ZADD', KEYS[1], 'XX', lease, ARGV[i]) end
end
return RENEWED
