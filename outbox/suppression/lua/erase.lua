-- Stops all mail to the person behind a digest.
-- KEYS[1] suppression:erased:<bucket>   KEYS[2] suppression:version (absent in a Cluster, where one script can't use keys of several partitions)
-- ARGV: field now
-- Result: 1 if it was not there before
-- Atomic because a script that finds an unchanged version must not miss an entry.
if KEYS[2] and redis.call('INCR', KEYS[2]) == 1 then begin_version(KEYS[2]) end
return redis.call('HSETNX', KEYS[1], field, now)
