-- Functions and values that the scripts of limits share. Times are microseconds since 1970; a double holds them exactly.

local SECOND = 1000000
local DOUBLING = 30 * SECOND   -- the pace after a pause doubles every 30 s
local FIRST = 0.1              -- recipients a second right after a pause
local RECOVERED = 300 * SECOND -- ten doublings: more than 100 a second, and the next pause counts as the first
local OVER = 900 * SECOND      -- thirty doublings: all that queued up has gone out

-- clock returns Redis' time, so that processes with different clocks agree; or a test's time.
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return tonumber(t[1]) * SECOND + tonumber(t[2])
end

local function whole(x) return string.format('%.0f', x) end

-- expire sets the lifetime of a key.
local function expire(key, micros) redis.call('PEXPIRE', key, whole(math.ceil(micros / 1000))) end
