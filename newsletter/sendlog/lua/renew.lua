-- renew makes the leases of sheets longer. A sheet that has ended stays so.
--
-- KEYS[1] log
-- ARGV: lease sheets...
-- Answer: OK
-- Atomic because it uses the time of the server.
local now = redis.call('TIME')
local till = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + lease)
for i = sheets, #ARGV do redis.call('ZADD', KEYS[1] .. ':sheets', 'XX', till, ARGV[i]) end
return OK
