-- move moves a few tasks out of their state: to pending (run now), to archived, or to nowhere. asynq's own
-- bulk operations take several seconds for a queue, in one script, and leave hashes of tasks that they trim
-- from the archive.
--
-- KEYS: pending, scheduled, retry, archived, completed
-- ARGV: tasks target now now_nanos keep span older ids...
--   tasks   prefix of the task hashes
--   target  pending, archived or nowhere
--   now     Unix seconds; now_nanos is the same in nanoseconds
--   keep    the largest number of tasks in the archive
--   span    number of entries of the list of pending tasks in which the caller found these; 0 if it did not look there
--   older   number of older entries at that time
-- Result: for each id 1 moved, 0 no such task, -1 it is with a worker, -2 its state does not allow this.
-- Atomic, so that a task is in one place only and its hash names it.
--
-- LREM walks along the list for each task in the middle; for half of a million tasks that takes hours. So tasks that lie together are
-- marked in their places, which Redis finds fast, and then removed in one walk from the nearer end.
local pending, scheduled, retry, archived, completed = unpack(KEYS)
local sets = {scheduled = scheduled, retry = retry, archived = archived, completed = completed}
span, older = tonumber(span), tonumber(older)

local mark, marked, places = "\0", 0, {} -- no id of a task is the mark
if span > 0 then
	-- Workers may have taken older tasks since the caller looked, so these may be nearer to the old end, never further from it.
	local first = math.max(0, redis.call("LLEN", pending) - older - span)
	for i, id in ipairs(redis.call("LRANGE", pending, first, -math.max(0, older - span) - 1)) do
		places[id] = first + i - 1
	end
end

local function unlist(id)
	if span == 0 then
		redis.call("LREM", pending, -1, id) -- from the old end, where most moved tasks are
		return true
	end
	if not places[id] then
		return false -- workers took many tasks meanwhile; it is nearly its turn
	end
	redis.call("LSET", pending, places[id], mark)
	marked = marked + 1
	return true
end

local function move(id)
	local key = tasks .. id
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
		redis.call("LPUSH", pending, id)
		redis.call("HSET", key, "state", "pending", "pending_since", now_nanos)
	else
		redis.call("ZADD", archived, now, id)
		redis.call("HSET", key, "state", "archived")
		redis.call("HDEL", key, "pending_since")
	end
	return 1
end

local res = {}
for i = ids, #ARGV do
	res[#res + 1] = move(ARGV[i])
end
if marked > 0 then
	local nearer = -marked
	if older > redis.call("LLEN", pending) / 2 then
		nearer = marked
	end
	redis.call("LREM", pending, nearer, mark)
end
if target == "archived" then
	-- Up to twice as many are removed as were added, so that an archive that grew too long shrinks.
	local extra = math.min(redis.call("ZCARD", archived) - keep, 2 * #res)
	if extra > 0 then
		for _, id in ipairs(redis.call("ZRANGE", archived, 0, extra - 1)) do
			redis.call("ZREM", archived, id)
			redis.call("DEL", tasks .. id)
		end
	end
end
return res
