-- fact records a fact about a message that a relay has accepted, and emits its event.
--
-- KEYS[1] message hash
-- ARGV: id now field fact lane account facts_most counter once event created outcome weight
--   field       identifies the fact
--   facts_most  facts that the message may have for this one to be recorded; 0 for any number
--   counter     to add to; '' for none
--   once        the same for all facts of a kind about a recipient; the event of the first one has the field f
--   outcome     the message's outcome, with this weight; '' for none
--   created     the message's, if it is known
-- Answer: NEW
-- Answer: AGAIN
-- Answer: FULL
--   AGAIN  the fact was recorded before
--   FULL   the message has facts_most facts
-- Atomic because a fact without its event would be lost: reported again, it would be AGAIN.
--
-- Facts of a message that is not in the log are kept for as long as a reporter may repeat them.

local key = prefix .. 'facts:' .. id
if redis.call('HEXISTS', key, field) == 1 then return AGAIN end
if facts_most ~= '0' and redis.call('HLEN', key) - redis.call('HEXISTS', key, '#outcome') >= tonumber(facts_most) then return FULL end
redis.call('HSET', key, field, fact)
local logged = redis.call('EXISTS', KEYS[1]) == 1 or redis.call('STRLEN', prefix .. 'ended:' .. id) > 0
if not logged then redis.call('EXPIRE', key, facts_stay) end
if outcome ~= '' then
  local had = outcome_of(id)
  if tonumber(weight) > tonumber(had or 0) then
    forget_outcome(id, lane, account)
    redis.call('HSET', key, '#outcome', weight .. ' ' .. outcome .. ' ' .. field)
    if logged then enlist(outcome_key(lane, outcome), {account = account, created = created}, id) end
  end
end
if counter ~= '' then count(now, {lane = lane}, counter) end
local first = redis.call('HSETNX', key, once, '')
emit(event, 'f', first == 1 and '1' or '')
return NEW
