-- trimlog forgets what is past the limits of an endpoint's log, before it is shown.
--
-- KEYS[1] log   ARGV 1 endpoint, 2 how many to keep, 3 cutoff
-- Result how many were forgotten (at most 100: call again)
-- Atomic because record and index go together.

return trim(ARGV[1], tonumber(ARGV[2]), ARGV[3])
