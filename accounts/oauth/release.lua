-- Releases the lock of an owner's token.
-- KEYS[1] oauth:<owner>:lock (string)
-- ARGV: fence
-- Result: 1 if released, 0 if another process has it.
-- Atomic because a lock that expired may be taken by another process between reading and deleting.
if redis.call('GET', KEYS[1]) ~= fence then
  return 0
end
return redis.call('DEL', KEYS[1])
