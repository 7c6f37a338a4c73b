-- trim removes the oldest archived or completed tasks: tasks that are too old, and tasks beyond a number. In
-- the archive this must come before asynq's own trimming, whose script passes all of them to unpack()
-- together. From about 8,000 on that fails, and nothing can be archived in that queue any more.
--
-- KEYS: archived or completed (ZSET, Unix seconds)
-- ARGV: tasks oldest keep most
--   tasks   prefix of the task hashes
--   oldest  tasks up to this Unix second are too old
--   keep    number of tasks that stay
--   most    number of tasks to remove in this call
-- Result: the number of tasks removed. Call again while it is most.
-- Atomic, so that a task leaves the set together with its hash.
local removed = 0
local function remove(ids)
	for _, id in ipairs(ids) do
		redis.call("ZREM", KEYS[1], id)
		redis.call("DEL", tasks .. id)
		removed = removed + 1
	end
end
remove(redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", oldest, "LIMIT", 0, most))
local extra = math.min(redis.call("ZCARD", KEYS[1]) - keep, most - removed)
if extra > 0 then
	remove(redis.call("ZRANGE", KEYS[1], 0, extra - 1))
end
return removed
