-- Stores the state of a gateway's webhook at its provider.
-- KEYS[1] gateway:<id> (hash)   KEYS[2] gateway:<id>:state (hash)
-- ARGV: state url text at
--   text: why the state is not ok; empty: unsaid   at: when it was checked, ms since 1970
-- Result: 1 if stored, 0 if the gateway was deleted.
-- Atomic so that a check that outlived its gateway leaves nothing behind.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[2], 'hook', state, 'hookUrl', url, 'hookError', text, 'hookAt', at)
return 1
