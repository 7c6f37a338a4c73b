-- create writes the record of one event on its way to one endpoint, before its task is enqueued.
--
-- KEYS[1] delivery hash
-- ARGV 1 endpoint, 2 delivery, 3 event JSON, 4 now, 5 how many may be pending for the endpoint, 6 ms to keep a pending delivery
-- Result 1 created, 2 it exists and is pending (its task may be missing), 0 it exists and is over, -1 too many are pending
-- Atomic because the limit is a promise about memory, and a second relay of the same event must find the first.

local endpoint, id, now = ARGV[1], ARGV[2], tonumber(ARGV[4])
local status = redis.call('HGET', KEYS[1], 'status')
if status == 'pending' then return 2 end
if status then return 0 end
if redis.call('ZCARD', log_key(endpoint)) - redis.call('ZCARD', done_key(endpoint)) >= tonumber(ARGV[5]) then return -1 end
redis.call('HSET', KEYS[1], 'status', 'pending', 'created', now, 'attempts', 0, 'event', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('ZADD', log_key(endpoint), now, id)
redis.call('ZADD', hook .. 'due', now, member(endpoint, id))
keep(endpoint, ARGV[6])
return 1
