-- Notes the state of an account.
-- KEYS[1] account:<id> (hash)   KEYS[2] account:<id>:state (hash)
-- ARGV[1] 1 if the account also comes from the configuration   ARGV[2] state   ARGV[3] error, empty for none   ARGV[4] now, ms since 1970
-- Result: 1 if noted, 0 if the account is gone.
-- Atomic so that the end of an attempt that outlived its account leaves nothing behind.
if ARGV[1] ~= '1' and redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[2], 'state', ARGV[2])
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[2], 'lastError', 'lastErrorAt')
else
  redis.call('HSET', KEYS[2], 'lastError', ARGV[3], 'lastErrorAt', ARGV[4])
end
return 1
