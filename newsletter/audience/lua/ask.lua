-- Counts an email that asks an address to confirm subscriptions, unless it was sent a moment ago or the address had its share.
-- KEYS[1] subscriber-asked:<digest>
-- ARGV: now lists within most day
--   now: Unix seconds   lists: the requested lists   within: seconds in which a repetition sends nothing; 0 if it does
--   most: mails a day; 0: any number   day: its seconds
-- Answer: ASK
-- Answer: REPEATED queue
-- Answer: MANY wait
--   queue: id of the mail that was sent; empty: not known   wait: seconds until the day is over
-- Atomic because only one of two concurrent requests sends an email.
local began = tonumber(redis.call('HGET', KEYS[1], 'began') or now)
if now - began >= tonumber(day) then
  redis.call('DEL', KEYS[1])
  began = now
end
local at, queue = string.match(redis.call('HGET', KEYS[1], lists) or '', '^(%d+) (.*)$')
if at and now - at < tonumber(within) then return REPEATED end
local sent = tonumber(redis.call('HGET', KEYS[1], 'sent') or 0)
local wait = began + day - now
if tonumber(most) > 0 and sent >= tonumber(most) then return MANY end
redis.call('HSET', KEYS[1], 'began', began, 'sent', sent + 1, lists, now .. ' ')
redis.call('EXPIRE', KEYS[1], day)
return ASK
