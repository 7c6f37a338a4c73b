-- skip enters a message in the log that is not queued, because all its recipients are suppressed.
--
-- KEYS[1] message hash, which is never written, then the idempotency key (absent without one)
-- ARGV: id now lane account record refuse fingerprint memo merge keep_key addressed keep_addressed events...
--   record  for the log; '' if there is no log
--   refuse  1: it is refused, and nothing is written
--   memo, addressed, keep_addressed  as for accept.lua
-- Answer: NEW
-- Answer: HIT first state
-- Answer: REUSED
--   HIT, REUSED  as for accept.lua
-- Atomic because an entry without its event, or an event without its entry, would contradict each other.

local at = {lane = lane, account = account, created = now}
if KEYS[2] then
  local print, first, state = used(KEYS[2])
  if print and same(print, fingerprint) then return HIT end
  if print then return REUSED end
end
if refuse == '1' or redis.call('EXISTS', prefix .. 'ended:' .. id) == 1 then return NEW end -- or this call is a repetition
enter(id, at, now, 'suppressed', record)
note_addressed(id, addressed, keep_addressed)
count(now, at, 'skipped')
emit_all(events)
if KEYS[2] then
  redis.call('SET', KEYS[2], table.concat({stored(fingerprint), 'suppressed', memo}, ' '), 'EX', keep_key)
  if merge ~= '' then settle_merge(merge, true, keep_key) end
end
return NEW
