-- forget clears a person's data except for the state, which stays as a number without a name.
--
-- KEYS[1] log
-- ARGV: offset bits...
--   bits   each with the other field that counts it, as in note. '' for none
-- Answer: OK
-- Atomic because counters and bits must agree.
redis.call('HDEL', KEYS[1] .. ':why', offset)
redis.call('HDEL', KEYS[1] .. ':earlier', offset)
redis.call('BITFIELD', KEYS[1] .. ':tried', 'SET', 'u40', '#' .. offset, 0)
read_groups(KEYS[1], {offset})
local counts = KEYS[1] .. ':counts'
for i = bits, #ARGV, 2 do
  local key, once = KEYS[1] .. ':' .. ARGV[i], ARGV[i + 1]
  if redis.call('GETBIT', key, offset) == 1 then
    redis.call('SETBIT', key, offset, 0)
    add(offset, ARGV[i], -1)
    if once ~= '' and tonumber(redis.call('HGET', counts, once) or 0) > 0 then redis.call('HINCRBY', counts, once, -1) end
  end
end
write_people(KEYS[1])
return OK
