-- write marks people whose final dot is about to be written, and records results: each if the state before
-- allows it. Without a mark a dot must not be written.
--
-- KEYS[1] log, KEYS[2] permission, KEYS[3] version of the suppressions (absent in a Cluster, where they are
-- asked directly before a mark)
-- ARGV: keep groups people...
--   keep    most replies that are kept of a chunk
--   groups  how many groups of people there are
--   people  of each group 7 texts, the last of which is its length; then the offsets of all. The texts are
--           of marks: batch, 2, permission as it was when the batch was taken, version as it was when the
--           suppressions were asked, and two that are empty;
--           of results: batch ('': any; if it has ended, another worker may have its people), state, letters
--           of the states before, a reply ('': none), attempts made (0: as before, -1: one more, -2: see
--           note_attempt) and the time of the last attempt in Unix seconds
-- Answer: OK words leases version
--   words    a letter for each person: G, marked or changed; N, the state did not allow the change; and of
--            marks C, permission was denied since, though it may be given again; L, the batch is no longer the
--            caller's, or the person has a result; V, somebody was suppressed since the version was read: ask again
--   leases   milliseconds that each group's batch has, separated by spaces; 0 for results
--   version  the suppressions'; '0' if no one was ever suppressed
-- Atomic because a permission that is denied, or a lease that ends, in between would not stop the mail; and
-- because counters and states must agree.
local offsets, words, leases, why, at = {unpack(ARGV, people + 7 * groups)}, {}, {}, KEYS[1] .. ':why', 0
local permission, version = redis.call('GET', KEYS[2]), KEYS[3] and (redis.call('GET', KEYS[3]) or '0') or ''
local now, replies = redis.call('TIME'), nil
now = now[1] * 1000 + math.floor(now[2] / 1000)
read_states(KEYS[1], offsets)
read_groups(KEYS[1], offsets)

-- keep_reply keeps a reply about a person, or forgets the one about the state before.
local function keep_reply(offset, reply)
  replies = replies or redis.call('HLEN', why)
  if reply == '' then
    if replies > 0 then replies = replies - redis.call('HDEL', why, offset) end
  elseif replies < tonumber(keep) or redis.call('HEXISTS', why, offset) == 1 then
    replies = replies + redis.call('HSET', why, offset, reply)
  end
end

for group = people, people + 7 * groups - 1, 7 do
  local batch, state, before, text, attempts, seconds, n = unpack(ARGV, group, group + 6)
  local ends = batch ~= '' and redis.call('ZSCORE', KEYS[1] .. ':batches', batch)
  local remaining = 0
  state = tonumber(state)
  if state == 2 then
    remaining = (ends or 0) - now
    local no = remaining <= 0 and 'L' or permission ~= before and 'C' or version ~= text and version ~= '' and 'V'
    for i = at + 1, at + n do -- 2, too: the client repeats a call whose answer it lost
      words[i] = no or change(KEYS[1], offsets[i], 2, 'bc') and 'G' or 'L'
    end
  else
    attempts, seconds = tonumber(attempts), tonumber(seconds)
    for i = at + 1, at + n do
      local ok = (batch == '' or ends) and change(KEYS[1], offsets[i], state, before)
      if ok then keep_reply(offsets[i], text) end
      if ok and attempts ~= 0 then note_attempt(KEYS[1], offsets[i], seconds, attempts) end
      words[i] = ok and 'G' or 'N'
    end
  end
  at = at + n
  leases[#leases + 1] = string.format('%.0f', math.max(0, remaining))
end
write_people(KEYS[1])
words, leases = table.concat(words), table.concat(leases, ' ')
return OK
