-- Counts an email that verifies an address, unless there were too many.
-- KEYS[1] the mails to the address
-- KEYS[2] the mails that the account asked for
-- ARGV: mail now day again per_address per_account
--   mail: account and hash of the address; its entries in KEYS[2] are the mail and its time
--   day, again: ms
-- Answer: SEND asked
-- Answer: AGAIN asked
-- Answer: ADDRESS free
-- Answer: ACCOUNT free
--   asked: when the mail was asked for; free: when there is room for another
-- Atomic so that requests at the same moment count one by one.
for i = 1, 2 do redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - day) end
local asked
for _, entry in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[2], '+inf', now - again)) do
  if not asked and string.sub(entry, 1, #mail + 1) == mail .. ' ' then
    asked = redis.call('ZSCORE', KEYS[2], entry)
  end
end
if asked then return AGAIN end
local free
for i, most in ipairs({per_address, per_account}) do
  if redis.call('ZCARD', KEYS[i]) >= tonumber(most) then
    free = redis.call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2] + day
    if i == 1 then return ADDRESS end
    return ACCOUNT
  end
end
asked = now
for i = 1, 2 do
  redis.call('ZADD', KEYS[i], now, mail .. ' ' .. now)
  redis.call('PEXPIRE', KEYS[i], day)
end
return SEND
