-- Estimates the memory a queue takes, from a sample of 20 tasks of each state, and does not fail on tasks without a hash as asynq's own does.
--
-- KEYS[1] active LIST  KEYS[2] pending LIST  KEYS[3] scheduled  KEYS[4] retry  KEYS[5] archived  KEYS[6] completed (ZSETs)
-- ARGV[1] prefix of the task hashes
-- Result: bytes. Atomic for no reason but the saved round trips.
local total = 0
for i = 1, 6 do
	local ids, n
	if i <= 2 then
		ids, n = redis.call("LRANGE", KEYS[i], 0, 19), redis.call("LLEN", KEYS[i])
	else
		ids, n = redis.call("ZRANGE", KEYS[i], 0, 19), redis.call("ZCARD", KEYS[i])
	end
	local sampled = 0
	for _, id in ipairs(ids) do
		sampled = sampled + (redis.call("MEMORY", "USAGE", ARGV[1] .. id) or 0)
	end
	if #ids > 0 then
		total = total + sampled / #ids * n + (redis.call("MEMORY", "USAGE", KEYS[i]) or 0)
	end
end
return math.floor(total)
