-- put creates, changes or deletes an endpoint, if it is still as the caller read it.
--
-- KEYS[1] hash of endpoints
-- ARGV: endpoint before after fresh
--   before  its JSON as the caller read it; empty if absent
--   after   its new JSON; empty to delete it
--   fresh   1: delete that it was failing or switched off
-- Result 1 done, 0 it has changed
-- Atomic because neither of two concurrent edits may be lost, and every process learns of the change by the
-- version.

if (redis.call('HGET', KEYS[1], endpoint) or '') ~= before then return 0 end
if after == '' then
  redis.call('HDEL', KEYS[1], endpoint)
  redis.call('HDEL', hook .. 'made', endpoint)
  redis.call('HDEL', hook .. 'woken', endpoint)
  redis.call('DEL', hook .. 'replaying:' .. endpoint)
else
  redis.call('HSET', KEYS[1], endpoint, after)
end
if fresh == '1' then
  redis.call('HDEL', hook .. 'off', endpoint)
  redis.call('HDEL', hook .. 'failing', endpoint)
  redis.call('DEL', hook .. 'rest:' .. endpoint)
end
redis.call('INCR', hook .. 'version')
return 1
