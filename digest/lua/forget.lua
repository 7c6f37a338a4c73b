-- forget deletes a recipient with all that waits.
--
-- KEYS[1] recipient, KEYS[2] recipients of the account, KEYS[3] due, KEYS[4] runs of the recipient, KEYS[5..8] keys of its
-- events by day, KEYS[9...] lists of events
-- ARGV: id members...
--   members  of due
-- Answer: GONE
redis.call('ZREM', KEYS[2], id)
for i = members, #ARGV do redis.call('ZREM', KEYS[3], ARGV[i]) end
redis.call('DEL', KEYS[1], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8])
for i = 9, #KEYS do drop(KEYS[i]) end
return GONE
