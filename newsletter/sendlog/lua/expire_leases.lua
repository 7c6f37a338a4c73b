-- expire_leases ends the batches whose lease has ended: their worker is gone.
--
-- KEYS[1] log
-- ARGV: doubt
--   doubt   the state of people at the dot: 10, or 0 to send to them again
-- Answer: OK back doubts
-- Atomic because a worker could mark a person of a batch that is being ended.
local now = redis.call('TIME')
now = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000))
local back, doubts = 0, 0
for _, batch in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1] .. ':batches', '-inf', now, 'LIMIT', 0, 10)) do
  local b, d = put_back(KEYS[1], batch, tonumber(doubt))
  back, doubts = back + b, doubts + d
end
write_people(KEYS[1])
return OK
