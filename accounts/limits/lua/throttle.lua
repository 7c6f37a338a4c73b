-- throttle begins a pause of a scope.
--
-- KEYS: 1 limit:<scope>, 2 limits:throttled, 3 limits:version
-- ARGV: 1 now or '', 2 the scope, 3 how long the relay asked for in microseconds, 0 if it named no time
-- Result: {end of the pause, how many pauses in a row, 1 if this call changed anything}
-- Atomic, because messages that were under way together are refused together, and that is one pause and not five.

local FIRST_PAUSE, LONGEST_PAUSE = 60 * SECOND, 1800 * SECOND

local now, asked = clock(ARGV[1]), tonumber(ARGV[3])
local m = redis.call('HMGET', KEYS[1], 'pause', 'strikes')
local pause, strikes = tonumber(m[1] or 0), tonumber(m[2] or 0)

if now < pause then -- refused before they knew
  if now + asked <= pause then return {whole(pause), whole(strikes), '0'} end
  pause = now + asked
else
  if now > pause + RECOVERED then strikes = 0 end
  strikes = strikes + 1
  if asked == 0 then asked = math.min(FIRST_PAUSE * 2 ^ math.min(strikes - 1, 10), LONGEST_PAUSE) end
  pause = now + asked
end

-- without its spec, the scope begins a new generation when it is next asked: reservations from before the pause are void
redis.call('HDEL', KEYS[1], 'spec')
redis.call('HSET', KEYS[1], 'pause', whole(pause), 'strikes', whole(strikes), 'paced', '0')
if redis.call('PTTL', KEYS[1]) * 1000 < pause + OVER - now then expire(KEYS[1], pause + OVER - now) end

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', whole(now))
redis.call('ZADD', KEYS[2], whole(pause + OVER), ARGV[2])
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
expire(KEYS[2], tonumber(last[2]) - now)
redis.call('INCR', KEYS[3])
return {whole(pause), whole(strikes), '1'}
