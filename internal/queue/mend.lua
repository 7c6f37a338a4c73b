-- mend repairs tasks whose hash and place disagree. They come from "archive all" in asynq's own tools, from an acknowledgement that
-- failed half-way, and from keys deleted by hand. Their ids are blocked for ever, and asynq's statistics fail on some.
--
-- KEYS: pending, active, scheduled, retry, archived, completed
-- ARGV: tasks now searchable ids...
--   tasks       prefix of the task hashes
--   now         nanoseconds
--   searchable  longest list of pending tasks that is searched; a longer one is taken to have them all
-- Answer: MENDED orphans returned unnamed
--   orphans   hashes removed
--   returned  tasks returned to pending
--   unnamed   ids without a hash removed
-- Atomic, so that a task between two states is not counted as lost.
local pending, active, scheduled, retry, archived, completed = unpack(KEYS)
local sets = {scheduled = scheduled, retry = retry, archived = archived, completed = completed}
local orphans, returned, unnamed = 0, 0, 0

local function listed(key, id)
	return redis.call("LPOS", key, id) ~= false
end

local function in_place(state, id)
	if sets[state] then
		return redis.call("ZSCORE", sets[state], id) ~= false
	elseif state == "active" then
		return listed(active, id)
	elseif state == "pending" then
		return redis.call("LLEN", pending) > tonumber(searchable) or listed(pending, id)
	end
	return true -- Postroom does not use this state
end

for i = #ARGV, ids, -1 do -- so that those returned run in their order
	local id, key = ARGV[i], tasks .. ARGV[i]
	local msg, state = unpack(redis.call("HMGET", key, "msg", "state"))
	if not msg then
		for _, set in pairs(sets) do
			unnamed = unnamed + redis.call("ZREM", set, id)
		end
		if state ~= "active" then
			orphans = orphans + redis.call("DEL", key) -- reap.lua removes active ones
		end
	elseif not in_place(state, id) then
		if state == "archived" or state == "completed" then
			redis.call("DEL", key)
			orphans = orphans + 1
		else
			-- It should have run. To run once too often is harmless.
			redis.call("RPUSH", pending, id)
			redis.call("HSET", key, "state", "pending", "pending_since", now)
			returned = returned + 1
		end
	end
end
return MENDED
