-- Returns to pending what a dead worker left in active, for asynq itself takes one to two minutes to notice, by constants.
--
-- A worker renews the leases of its tasks every 5 s to 30 s from now, so a lease with less than 22 s left has been silent for 8 s. An
-- id in active without any lease, or without a task behind it, has no worker either (asynq would leave it there for ever).
--
-- KEYS[1] active LIST    KEYS[2] lease ZSET (Unix seconds)    KEYS[3] pending LIST
-- ARGV[1] leases up to this Unix second have been silent for too long
-- ARGV[2] prefix of the task hashes    ARGV[3] now in nanoseconds    ARGV[4] most tasks to look at
-- Result: the number of tasks returned, and the number of empty ones removed.
-- Atomic, so that no worker acknowledges a task between the look and the move.
local returned, removed = 0, 0

local function give_back(id)
	redis.call("ZREM", KEYS[2], id)
	local active = redis.call("LREM", KEYS[1], 0, id)
	local key = ARGV[2] .. id
	if redis.call("HEXISTS", key, "msg") == 0 then
		redis.call("DEL", key)
		removed = removed + 1
	elseif active > 0 or redis.call("HGET", key, "state") == "active" then
		-- To the head of the queue: it has waited its turn once.
		redis.call("RPUSH", KEYS[3], id)
		redis.call("HSET", key, "state", "pending", "pending_since", ARGV[3])
		returned = returned + 1
	end
end

for _, id in ipairs(redis.call("ZRANGEBYSCORE", KEYS[2], "-inf", ARGV[1], "LIMIT", 0, ARGV[4])) do
	give_back(id)
end
for _, id in ipairs(redis.call("LRANGE", KEYS[1], 0, ARGV[4] - 1)) do
	if not redis.call("ZSCORE", KEYS[2], id) or redis.call("HEXISTS", ARGV[2] .. id, "msg") == 0 then
		give_back(id)
	end
end
return {returned, removed}
