-- reap returns to pending the active tasks of dead workers. asynq itself takes one to two minutes for that, by constants.
--
-- A worker renews the leases of its tasks to 30 s from now, every 5 s. So a lease with less than 22 s left was not renewed for 8 s. An
-- active id without a lease, or without a task, has no worker either; asynq would leave it there for ever.
--
-- KEYS: active (LIST), lease (ZSET, Unix seconds), pending (LIST)
-- ARGV: silent tasks now most
--   silent  leases up to this Unix second were not renewed for too long
--   tasks   prefix of the task hashes
--   now     nanoseconds
--   most    number of tasks to look at
-- Answer: REAPED returned removed
--   returned  tasks returned to pending
--   removed   ids without a task removed
-- Atomic, so that no worker acknowledges a task between the look and the move.
local active, lease, pending = unpack(KEYS)
local returned, removed = 0, 0

local function give_back(id)
	redis.call("ZREM", lease, id)
	local was_active = redis.call("LREM", active, 0, id) > 0
	local key = tasks .. id
	if redis.call("HEXISTS", key, "msg") == 0 then
		redis.call("DEL", key)
		removed = removed + 1
	elseif was_active or redis.call("HGET", key, "state") == "active" then
		-- To the head of the queue: it has waited once.
		redis.call("RPUSH", pending, id)
		redis.call("HSET", key, "state", "pending", "pending_since", now)
		returned = returned + 1
	end
end

for _, id in ipairs(redis.call("ZRANGEBYSCORE", lease, "-inf", silent, "LIMIT", 0, most)) do
	give_back(id)
end
for _, id in ipairs(redis.call("LRANGE", active, 0, most - 1)) do
	if not redis.call("ZSCORE", lease, id) or redis.call("HEXISTS", tasks .. id, "msg") == 0 then
		give_back(id)
	end
end
return REAPED
