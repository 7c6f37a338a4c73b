-- put stores the tokens of an owner.
--
-- KEYS[1] record, KEYS[2] lock, KEYS[3] set of owners
-- ARGV 1 owner, 2 the caller's fence, 3 the record as the caller saw it (empty: none), 4 the new record, 5 ms to keep it
-- Result 1 stored, 0 overtaken: the turn is over and the record is another one
-- Atomic because a process that was too slow must not write over the tokens of the one that took over. A lock that is gone (it ran out, or
-- a failover lost it) does no harm as long as nobody stored anything: then our refresh token may be the only good one.

if redis.call('GET', KEYS[2]) ~= ARGV[2] and (redis.call('GET', KEYS[1]) or '') ~= ARGV[3] then return 0 end
redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
redis.call('SADD', KEYS[3], ARGV[1])
return 1
