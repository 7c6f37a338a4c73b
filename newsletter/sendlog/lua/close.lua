-- close ends a batch, and adds its counts.
--
-- KEYS[1] log
-- ARGV: batch tallies...
--   tallies  fields of the counters and what to add, in turns
-- Answer: OK
-- Atomic because people who are given back without being scanned again would be lost.
local held = redis.call('ZSCORE', KEYS[1] .. ':batches', batch)
if held then
  for i = tallies, #ARGV, 2 do redis.call('HINCRBY', KEYS[1] .. ':counts', ARGV[i], ARGV[i + 1]) end
end
put_back(KEYS[1], batch, 10)
write_people(KEYS[1])
return OK
