-- Counts a queue. It reads what it finds and never fails on what it does not: a queue that does not exist counts zero, and a task without
-- a hash, which breaks asynq's own statistics, is counted like any other.
--
-- KEYS[1] pending  KEYS[2] active  KEYS[3] scheduled  KEYS[4] retry  KEYS[5] archived  KEYS[6] completed
-- KEYS[7] processed  KEYS[8] failed  KEYS[9] paused
-- ARGV[1] prefix of the task hashes
-- Result: the sizes of KEYS[1] to [6], processed, failed, paused (0 or 1); and as strings, "" when there is none or it is unknown: since
-- when the oldest pending task waits, in nanoseconds (a number would lose digits), the earliest time of a scheduled or retried task, in
-- seconds, and when the pause began, in seconds.
-- Atomic, so that a task on its way from one state to the next is counted once.
local res = {redis.call("LLEN", KEYS[1]), redis.call("LLEN", KEYS[2])}
for i = 3, 6 do
	res[i] = redis.call("ZCARD", KEYS[i])
end
res[7] = tonumber(redis.call("GET", KEYS[7]) or "0")
res[8] = tonumber(redis.call("GET", KEYS[8]) or "0")
res[9] = redis.call("EXISTS", KEYS[9])
res[10] = ""
-- A task returned at shutdown has lost the time since when it waits, so a few of the oldest are asked.
local oldest = redis.call("LRANGE", KEYS[1], -5, -1)
for i = #oldest, 1, -1 do
	local since = redis.call("HGET", ARGV[1] .. oldest[i], "pending_since")
	if since then
		res[10] = since
		break
	end
end
res[11] = ""
for i = 3, 4 do
	local first = redis.call("ZRANGE", KEYS[i], 0, 0, "WITHSCORES")[2]
	if first and (res[11] == "" or tonumber(first) < tonumber(res[11])) then
		res[11] = first
	end
end
res[12] = redis.call("GET", KEYS[9]) or ""
return res
