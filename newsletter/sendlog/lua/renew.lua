-- renew makes the leases of batches longer. A batch that has ended stays so.
--
-- KEYS[1] log
-- ARGV: lease batches...
-- Answer: OK
-- Atomic because it uses the time of the server.
local now = redis.call('TIME')
local till = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + lease)
for i = batches, #ARGV do redis.call('ZADD', KEYS[1] .. ':batches', 'XX', till, ARGV[i]) end
return OK
