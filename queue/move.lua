-- Moves tasks out of the state they are in: to pending (run now), to archived, or out of the world. asynq's own bulk operations do
-- all of a queue in one script, seconds long, and forget the hashes of what they trim from the archive; this one does a handful and forgets nothing.
--
-- KEYS[1] pending  KEYS[2] scheduled  KEYS[3] retry  KEYS[4] archived  KEYS[5] completed
-- ARGV[1] prefix of the task hashes    ARGV[2] where to: pending, archived or nowhere
-- ARGV[3] now in Unix seconds    ARGV[4] now in nanoseconds    ARGV[5] most tasks the archive holds
-- ARGV[6..] task ids
-- Result: for each id 1 moved, 0 no such task, -1 it is with a worker, -2 it is in a state that does not allow this.
-- Atomic, so that a task is in one place only and its hash says which.
local sets = {scheduled = KEYS[2], retry = KEYS[3], archived = KEYS[4], completed = KEYS[5]}
local target = ARGV[2]

local function move(id)
	local key = ARGV[1] .. id
	local state = redis.call("HGET", key, "state")
	if not state then
		return 0
	end
	if state == "active" then
		return -1
	end
	if state == target or (state == "completed" and target ~= "nowhere") then
		return -2
	end
	if state == "pending" then
		redis.call("LREM", KEYS[1], -1, id) -- from the old end, where bulk operations work
	elseif sets[state] then
		redis.call("ZREM", sets[state], id)
	else
		return -2
	end
	if target == "nowhere" then
		redis.call("DEL", key)
	elseif target == "pending" then
		redis.call("LPUSH", KEYS[1], id)
		redis.call("HSET", key, "state", "pending", "pending_since", ARGV[4])
	else
		redis.call("ZADD", KEYS[4], ARGV[3], id)
		redis.call("HSET", key, "state", "archived")
		redis.call("HDEL", key, "pending_since")
	end
	return 1
end

local res = {}
for i = 6, #ARGV do
	res[#res + 1] = move(ARGV[i])
end
if target == "archived" then
	-- Twice as many go as can have come, so that an archive grown too long elsewhere shrinks.
	local extra = math.min(redis.call("ZCARD", KEYS[4]) - tonumber(ARGV[5]), 2 * #res)
	if extra > 0 then
		for _, id in ipairs(redis.call("ZRANGE", KEYS[4], 0, extra - 1)) do
			redis.call("ZREM", KEYS[4], id)
			redis.call("DEL", ARGV[1] .. id)
		end
	end
end
return res
