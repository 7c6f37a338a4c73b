-- memory estimates the memory of a queue, from a sample of 20 tasks of each state. Unlike asynq's own script it does not fail on tasks
-- without a hash.
--
-- KEYS: active, pending (LISTs), scheduled, retry, archived, completed (ZSETs)
-- ARGV: tasks
--   tasks  prefix of the task hashes
-- Result: bytes. Atomic only to save round trips.
local total = 0
for i, key in ipairs(KEYS) do
	local ids, n
	if i <= 2 then
		ids, n = redis.call("LRANGE", key, 0, 19), redis.call("LLEN", key)
	else
		ids, n = redis.call("ZRANGE", key, 0, 19), redis.call("ZCARD", key)
	end
	local sampled = 0
	for _, id in ipairs(ids) do
		sampled = sampled + (redis.call("MEMORY", "USAGE", tasks .. id) or 0)
	end
	if #ids > 0 then
		total = total + sampled / #ids * n + (redis.call("MEMORY", "USAGE", key) or 0)
	end
end
return math.floor(total)
