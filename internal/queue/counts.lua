-- counts counts a queue. It never fails: a queue that does not exist counts zero, and a task without a hash, which breaks asynq's own
-- statistics, counts like any other.
--
-- KEYS: pending, active, scheduled, retry, archived, completed, processed, failed, paused
-- ARGV: tasks
--   tasks  prefix of the task hashes
-- Answer: COUNTS waiting active scheduled retrying archived completed processed_total failed_total paused since due paused_at
--   since      when the oldest waiting task began to wait, in nanoseconds, as text (a number would lose digits); '' if unknown
--   due        the earliest time of a scheduled or retrying task, in seconds; '' for none
--   paused_at  when the pause began, in seconds; '' if unknown
-- Atomic, so that a task that moves from one state to the next is counted once.
local waiting_key, active_key, scheduled_key, retry_key, archived_key, completed_key, processed_key, failed_key, paused_key = unpack(KEYS)

local processed_total, failed_total, paused_at = unpack(redis.call("MGET", processed_key, failed_key, paused_key))
processed_total, failed_total = processed_total or "0", failed_total or "0"
local paused = paused_at and 1 or 0
paused_at = paused_at or ""

local waiting, active, scheduled, retrying, archived, completed = 0, 0, 0, 0, 0, 0
local since, due = "", ""
if redis.call("EXISTS", waiting_key, active_key, scheduled_key, retry_key, archived_key, completed_key) > 0 then
	waiting, active = redis.call("LLEN", waiting_key), redis.call("LLEN", active_key)
	scheduled, retrying = redis.call("ZCARD", scheduled_key), redis.call("ZCARD", retry_key)
	archived, completed = redis.call("ZCARD", archived_key), redis.call("ZCARD", completed_key)

	-- A task that a stop returned has lost the time, so five of the oldest are read.
	local oldest = redis.call("LRANGE", waiting_key, -5, -1)
	for i = #oldest, 1, -1 do
		since = redis.call("HGET", tasks .. oldest[i], "pending_since") or ""
		if since ~= "" then break end
	end

	for _, key in ipairs({scheduled_key, retry_key}) do
		local first = redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2]
		if first and (due == "" or tonumber(first) < tonumber(due)) then
			due = first
		end
	end
end
return COUNTS
