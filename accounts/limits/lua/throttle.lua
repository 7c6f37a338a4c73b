-- Begins a pause of a scope.
-- KEYS[1] limit:<scope> (hash)   KEYS[2] limits:throttled or limits:throttled:dest (sorted set)   KEYS[3] limits:version
-- ARGV: test_now scope wait most
--   test_now: empty for the clock of Redis   wait: that the relay asked for, in microseconds; 0 if it named none
--   most: members that the set may have, beyond which the one that matters no longer first goes; 0 for any number
-- Answer: BEGUN pause strikes
-- Answer: KNOWN pause strikes
--   BEGUN: a new pause, or a longer one   KNOWN: nothing has changed   pause: its end   strikes: number of pauses in a row
-- Atomic because messages that are under way together are refused together, and that is one pause.

local FIRST_PAUSE, LONGEST_PAUSE = 60 * SECOND, 1800 * SECOND

local now, asked = clock(test_now), tonumber(wait)
local m = redis.call('HMGET', KEYS[1], 'pause', 'strikes')
local pause, strikes = tonumber(m[1] or 0), tonumber(m[2] or 0)

if now < pause then -- the message was under way when the pause began
  if now + asked <= pause then return KNOWN end
  pause = now + asked
else
  if now > pause + RECOVERED then strikes = 0 end
  strikes = strikes + 1
  if asked == 0 then asked = math.min(FIRST_PAUSE * 2 ^ math.min(strikes - 1, 10), LONGEST_PAUSE) end
  pause = now + asked
end

-- without its spec, the scope begins a new generation at the next call of reserve.lua: older reservations become void
redis.call('HDEL', KEYS[1], 'spec')
redis.call('HSET', KEYS[1], 'pause', whole(pause), 'strikes', whole(strikes), 'paced', '0')
if redis.call('PTTL', KEYS[1]) * 1000 < pause + OVER - now then expire(KEYS[1], pause + OVER - now) end

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', whole(now))
redis.call('ZADD', KEYS[2], whole(pause + OVER), scope)
if tonumber(most) > 0 then redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - most) end
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
expire(KEYS[2], tonumber(last[2]) - now)
redis.call('INCR', KEYS[3])
return BEGUN
