-- forget deletes a recipient with all that waits.
--
-- KEYS[1] recipient, KEYS[2] recipients of the account, KEYS[3] due, KEYS[4] runs of the recipient, KEYS[5..8] keys of its
-- events by day, KEYS[9...] lists of events
-- ARGV: id categories members...
--   categories  how many the caller knows, whose lists are in KEYS
--   members     its members of due
-- Answer: CHANGED
-- Answer: GONE
--   CHANGED  a run began or a category came that the caller does not know
-- Atomic because a run that begins in between would be sent.
if redis.call('ZCARD', KEYS[4]) > 0 or (redis.call('HGET', KEYS[1], 'categories') or '0') ~= categories then return CHANGED end
redis.call('ZREM', KEYS[2], id)
for i = members, #ARGV do redis.call('ZREM', KEYS[3], ARGV[i]) end
redis.call('DEL', KEYS[1], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8])
for i = 9, #KEYS do drop(KEYS[i]) end
return GONE
