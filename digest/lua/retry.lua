-- retry opens a failed run again.
--
-- KEYS[1] run, KEYS[2] recipient, KEYS[3] open, KEYS[4] fences, KEYS[5] runs of the account
-- ARGV: run now
-- Answer: QUEUED
-- Answer: OTHER state
--   OTHER  it has not failed, its events returned or were dropped, or will be (it is still open), its message failed, or
--          its recipient is gone
local state = redis.call('HGET', KEYS[1], 'state')
local returned, dropped = tonumber(redis.call('HGET', KEYS[1], 'returned') or '0'), tonumber(redis.call('HGET', KEYS[1], 'dropped') or '0')
if state ~= 'failed' or returned > 0 or dropped > 0 or redis.call('ZSCORE', KEYS[3], 'run ' .. run) or redis.call('EXISTS', KEYS[2]) == 0 then return OTHER end
if (redis.call('HGET', KEYS[1], 'queueId') or '') ~= '' then return OTHER end
redis.call('HSET', KEYS[1], 'state', 'pending', 'attempts', 0, 'reason', '')
redis.call('HINCRBY', KEYS[1], 'retries', 1)
redis.call('HDEL', KEYS[1], 'ended')
index(KEYS[5], state, 'pending', run, now)
grant(KEYS[4], 'run ' .. run)
redis.call('ZADD', KEYS[3], now, 'run ' .. run)
return QUEUED
