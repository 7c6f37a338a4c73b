-- Gives words a number, or returns the one that they have.
-- KEYS[1] subscriber-words:<account>
-- ARGV: words...
-- Result: their numbers, with a blank between them.
-- Atomic because a number must not stand for two texts.
local numbers = {}
for i = words, #ARGV do
  local number = redis.call('HGET', KEYS[1], '=' .. ARGV[i])
  if not number then
    number = redis.call('HINCRBY', KEYS[1], 'last', 1)
    redis.call('HSET', KEYS[1], '=' .. ARGV[i], number, number, ARGV[i])
  end
  numbers[#numbers + 1] = number
end
return table.concat(numbers, ' ')
