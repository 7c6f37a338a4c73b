-- trim deletes the deliveries beyond the limits of an endpoint's log, before it is shown.
--
-- KEYS[1] log
-- ARGV: endpoint keep_most cutoff
-- Result how many were deleted (at most 100: call again)
-- Atomic because record and index go together.

return trim(endpoint, tonumber(keep_most), cutoff)
