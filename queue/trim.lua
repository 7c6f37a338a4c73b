-- Removes the oldest archived or completed tasks, those that are too old and those that are too many. Of the archive it has to be done
-- before asynq does it: its script passes all of them to unpack() at once, which fails from about 8,000 on, and nothing can be archived
-- in that queue any more.
--
-- KEYS[1] archived or completed ZSET (Unix seconds)
-- ARGV[1] prefix of the task hashes    ARGV[2] up to this Unix second is too old    ARGV[3] most tasks that stay
-- ARGV[4] most tasks to remove in this call
-- Result: the number of tasks removed; call again while it is ARGV[4].
-- Atomic, so that a task leaves the archive together with its hash.
local removed = 0
local function remove(ids)
	for _, id in ipairs(ids) do
		redis.call("ZREM", KEYS[1], id)
		redis.call("DEL", ARGV[1] .. id)
		removed = removed + 1
	end
end
local most = tonumber(ARGV[4])
remove(redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", ARGV[2], "LIMIT", 0, most))
local extra = math.min(redis.call("ZCARD", KEYS[1]) - tonumber(ARGV[3]), most - removed)
if extra > 0 then
	remove(redis.call("ZRANGE", KEYS[1], 0, extra - 1))
end
return removed
