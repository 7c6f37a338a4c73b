-- Mends tasks whose hash and whose place disagree. Such tasks are left by an operator's "archive all" through asynq's own tools, by an
-- acknowledgement that failed half way, by keys deleted by hand. Their id is blocked for ever, and asynq's statistics fail on some.
--
-- KEYS[1] pending  KEYS[2] active  KEYS[3] scheduled  KEYS[4] retry  KEYS[5] archived  KEYS[6] completed
-- ARGV[1] prefix of the task hashes    ARGV[2] now in nanoseconds
-- ARGV[3] how long pending may be to be searched; a longer one is believed    ARGV[4..] task ids
-- Result: the numbers of hashes removed, of tasks returned to pending, and of ids without a hash removed.
-- Atomic, so that a task on its way between two states is not taken for lost.
local sets = {scheduled = KEYS[3], retry = KEYS[4], archived = KEYS[5], completed = KEYS[6]}
local removed, returned, unnamed = 0, 0, 0

local function listed(key, id)
	return redis.call("LPOS", key, id) ~= false
end

local function in_place(state, id)
	if sets[state] then
		return redis.call("ZSCORE", sets[state], id) ~= false
	elseif state == "active" then
		return listed(KEYS[2], id)
	elseif state == "pending" then
		return redis.call("LLEN", KEYS[1]) > tonumber(ARGV[3]) or listed(KEYS[1], id)
	end
	return true -- a state we do not use is not ours to judge
end

for i = 4, #ARGV do
	local id, key = ARGV[i], ARGV[1] .. ARGV[i]
	local msg, state = unpack(redis.call("HMGET", key, "msg", "state"))
	if not msg then
		for _, set in pairs(sets) do
			unnamed = unnamed + redis.call("ZREM", set, id)
		end
		if state ~= "active" then
			removed = removed + redis.call("DEL", key) -- one in active is for reap.lua
		end
	elseif not in_place(state, id) then
		if state == "archived" or state == "completed" then
			redis.call("DEL", key)
			removed = removed + 1
		else
			-- It was to run: let it. To run once too often is harmless.
			redis.call("RPUSH", KEYS[1], id)
			redis.call("HSET", key, "state", "pending", "pending_since", ARGV[2])
			returned = returned + 1
		end
	end
end
return {removed, returned, unnamed}
