-- create writes the record of one event for one endpoint, before its task is enqueued.
--
-- KEYS[1] delivery hash
-- ARGV: endpoint id event now max_pending keep_for again
--   event        JSON
--   max_pending  how many deliveries may be pending for the endpoint
--   keep_for     milliseconds to keep a pending delivery
--   again        the event, if it is sent again; '' if this is its first delivery
-- Answer: CREATED
-- Answer: PENDING
-- Answer: OVER
-- Answer: FULL
--   PENDING  it exists and is pending; its task may be missing
--   OVER     it exists and has ended
--   FULL     too many are pending
-- Atomic because the limit is a promise about memory, and a second fan-out of the same event must find the first.

local status = redis.call('HGET', KEYS[1], 'status')
if status == 'pending' then return PENDING end
if status then return OVER end
if redis.call('ZCARD', log_key(endpoint)) - redis.call('ZCARD', done_key(endpoint)) >= tonumber(max_pending) then return FULL end
redis.call('HINCRBY', hook .. 'made', endpoint, 1)
redis.call('HSET', KEYS[1], 'status', 'pending', 'created', now, 'attempts', 0, 'event', event)
redis.call('PEXPIRE', KEYS[1], keep_for)
redis.call('ZADD', log_key(endpoint), now, id)
redis.call('ZADD', hook .. 'due', now, member(endpoint, id))
keep(endpoint, keep_for)
if again ~= '' then redis.call('SET', hook .. 'again:' .. endpoint .. ':' .. again, id, 'PX', keep_for) end
return CREATED
