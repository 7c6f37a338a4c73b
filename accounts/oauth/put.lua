-- Stores the record of an owner.
-- KEYS[1] oauth:<owner> (string)   KEYS[2] oauth:<owner>:lock (string)   KEYS[3] oauth:owners (set)
-- ARGV: owner fence before after keep_for
--   fence: name of the process   before: the record as it was read, empty for none   after: the new record   keep_for: its lifetime, ms
-- Result: 1 if stored, 0 if overtaken: the lock has expired and the record is another one.
-- Atomic because a process that was too slow must not overwrite the tokens of its successor. A lock that is gone (it expired, or a
-- failover lost it) does no harm as long as the record is the same: then our refresh token may be the only valid one.
if redis.call('GET', KEYS[2]) ~= fence and (redis.call('GET', KEYS[1]) or '') ~= before then
  return 0
end
redis.call('SET', KEYS[1], after, 'PX', keep_for)
redis.call('SADD', KEYS[3], owner)
return 1
