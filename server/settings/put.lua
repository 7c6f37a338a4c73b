-- Stores settings, unless the address of webhooks or their headers have changed since they were read.
-- KEYS[1] settings (hash)
-- ARGV: webhooks webhooks_before headers headers_before pairs...
--   webhooks, headers: names of the two settings   ..._before: their stored forms, empty for none   pairs: names and stored forms
-- Result: 1 if stored, 0 if one of the two has changed.
-- Atomic because the headers are sealed for the address: each of two concurrent changes would store half of
-- what it read.
if (redis.call('HGET', KEYS[1], webhooks) or '') ~= webhooks_before or (redis.call('HGET', KEYS[1], headers) or '') ~= headers_before then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, pairs))
return 1
