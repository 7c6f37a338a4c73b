-- forget clears what is known of a person beside the state, which stays as a number of nobody.
--
-- KEYS[1] log
-- ARGV: offset bits...
-- Answer: OK
-- Atomic because counters and bits must agree.
redis.call('HDEL', KEYS[1] .. ':why', offset)
for i = bits, #ARGV do
  local key = KEYS[1] .. ':' .. ARGV[i]
  if redis.call('GETBIT', key, offset) == 1 then
    redis.call('SETBIT', key, offset, 0)
    add(KEYS[1], offset, ARGV[i], -1)
  end
end
return OK
