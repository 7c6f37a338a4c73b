-- Moves tasks out of the state they are in: to pending (run now), to archived, or out of the world. asynq's own bulk operations do
-- all of a queue in one script, seconds long, and forget the hashes of what they trim from the archive; this one does a handful and forgets nothing.
--
-- KEYS[1] pending  KEYS[2] scheduled  KEYS[3] retry  KEYS[4] archived  KEYS[5] completed
-- ARGV[1] prefix of the task hashes    ARGV[2] where to: pending, archived or nowhere
-- ARGV[3] now in Unix seconds    ARGV[4] now in nanoseconds    ARGV[5] most tasks the archive holds
-- ARGV[6] how many entries the caller read off the list of pending tasks to find these; 0: it did not
-- ARGV[7] how many older ones there were then    ARGV[8..] task ids
-- Result: for each id 1 moved, 0 no such task, -1 it is with a worker, -2 it is in a state that does not allow this.
-- Atomic, so that a task is in one place only and its hash says which.
--
-- LREM walks along the list for each task it takes out of the middle, which for half of a million tasks takes hours. Tasks that lie
-- together are therefore marked in their places, which Redis finds by leaps, and then taken out in one walk from the nearer end.
local sets = {scheduled = KEYS[2], retry = KEYS[3], archived = KEYS[4], completed = KEYS[5]}
local target = ARGV[2]

local span, older = tonumber(ARGV[6]), tonumber(ARGV[7])
local mark, marked, places = "\0", 0, {} -- the mark is no task's id
if span > 0 then
	-- Workers may have taken older tasks since the caller looked, so these may be nearer to the old end, never further from it.
	local first = math.max(0, redis.call("LLEN", KEYS[1]) - older - span)
	for i, id in ipairs(redis.call("LRANGE", KEYS[1], first, -math.max(0, older - span) - 1)) do
		places[id] = first + i - 1
	end
end

local function unlist(id)
	if span == 0 then
		redis.call("LREM", KEYS[1], -1, id) -- from the old end, where most are that anybody moves
		return true
	end
	if not places[id] then
		return false -- many workers were quick; it is nearly its turn
	end
	redis.call("LSET", KEYS[1], places[id], mark)
	marked = marked + 1
	return true
end

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
		if not unlist(id) then
			return -1
		end
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
for i = 8, #ARGV do
	res[#res + 1] = move(ARGV[i])
end
if marked > 0 then
	local nearer = -marked
	if older > redis.call("LLEN", KEYS[1]) / 2 then
		nearer = marked
	end
	redis.call("LREM", KEYS[1], nearer, mark)
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
