-- The common part of all scripts of the outbox. It stands before the body of each.
--
-- KEYS[1] of each script is its message's hash, or any key of the partition for a script about many messages.
-- The other keys are made from its prefix. A Redis Cluster allows that, because the tag in braces puts all
-- keys of a partition in one slot. Times are the caller's, in Unix milliseconds; its clock follows Redis'
-- clock.

local prefix = string.match(KEYS[1], '^(.-})') .. ':'

local function message_key(id) return prefix .. 'message:' .. id end
local function envelope_key(id) return prefix .. 'envelope:' .. id end
local function content_key(id) return prefix .. 'content:' .. id end
local function status_key(id) return prefix .. 'status:' .. id end
-- A message that is being sent stays in the index waiting, so that its beginning and its end move it nowhere.
local function index_key(lane, state)
  return prefix .. 'index:' .. lane .. ':' .. (state == 'active' and 'waiting' or state)
end
local function log_key(lane, result) return prefix .. 'log:' .. lane .. ':' .. result end
local function shared_key(name) return prefix .. 'shared:' .. name end
local function held_key(hold) return prefix .. 'held:' .. hold end
local function shared_kept_key(name) return prefix .. 'sharedKept:' .. name end
local function idempotency_key(hash) return prefix .. 'idempotency:' .. hash end

-- count_minute adds to a minute's counter. The minutes of an hour share a hash, which lives a little longer
-- than the longest window. A negative number undoes counts that are still there.
local function count_minute(account, counter, minute, number)
  local key, field = prefix .. 'stats:' .. math.floor(minute / 60), counter .. ':' .. (minute % 60)
  if account ~= '' then key = key .. ':' .. account end
  if number < 0 and tonumber(redis.call('HGET', key, field) or 0) + number < 0 then return end
  if redis.call('HINCRBY', key, field, number) == number then redis.call('EXPIRE', key, 93600) end
end

-- count adds one to a counter of the current minute. The next event carries it, in its field n, and rates.lua adds it: so
-- counting costs the scripts of a message nothing. Each script that counts emits an event afterwards.
local counted = {}
local function count(now, at, name)
  counted[#counted + 1] = name .. ':' .. at.lane .. ':' .. math.floor(tonumber(now) / 60000)
end

-- emit appends an event to the stream, with a field and its value, if they are given; emit_all appends those in ARGV from
-- an index on.
local function emit(event, field, value)
  local entry = {'e', event}
  if #counted > 0 then entry[3], entry[4] = 'n', table.concat(counted, ' ') end
  if field then entry[#entry + 1], entry[#entry + 2] = field, value end
  redis.call('XADD', prefix .. 'events', '*', unpack(entry))
  counted = {}
end
local function emit_all(first)
  for i = first, #ARGV do emit(ARGV[i]) end
end

-- enlist adds a message to an index and to the account's part of it; strike removes it.
local function enlist(key, at, id)
  redis.call('ZADD', key, at.created, id)
  redis.call('ZADD', key .. ':' .. at.account, at.created, id)
end
local function strike(key, at, id)
  redis.call('ZREM', key, id)
  redis.call('ZREM', key .. ':' .. at.account, id)
end

-- turn is the place of a message among others of its account and lane that wait: by rank (-1: high, 1: low), then by
-- the time for which it was accepted. So it is the score in a backlog and in a line.
local function turn(at)
  local due = at.scheduled or at.created
  if not at.rank then return due end
  return string.format('%.0f', tonumber(due) + tonumber(at.rank) * 1e13)
end

-- The backlog of an account in a lane has its waiting messages beyond the window: they have no task. So a large
-- backlog of one account does not stand in the queue before the mail of others. The oldest message follows when
-- one of the account's leaves.
local function backlog_key(at) return prefix .. 'backlog:' .. at.lane .. ':' .. at.account end

-- under_way returns how many messages of an account have a task in the queue or are being sent: all but the
-- ones in its backlog.
local function under_way(at, backlog)
  return redis.call('ZCARD', index_key(at.lane, 'waiting') .. ':' .. at.account) - backlog
end

-- is_full returns whether the window has no room for one more in addition to others. High-priority messages
-- have as much room again, so that they don't wait for the backlog.
local function is_full(at, others, window)
  return others >= tonumber(window) * (at.rank == '-1' and 2 or 1)
end

-- put_off adds a waiting message to the backlog, which has backlog messages until then. The caller writes its
-- field putOff: the epoch of the message. It gets another epoch when it leaves the backlog, so the record
-- shows whether it is in there.
local function put_off(at, id, backlog)
  redis.call('ZADD', backlog_key(at), turn(at), id)
  if backlog == 0 then redis.call('SADD', prefix .. 'backlogs', at.lane .. ' ' .. at.account) end
end

-- clocks are the sorted sets by time of four states: the end of the lease, the due time, the time of the failure.
local clocks = {active = prefix .. 'leases', scheduled = prefix .. 'due', delayed = prefix .. 'due', failed = prefix .. 'dead'}

-- leased is a message in leases. It has what lists and counts need to distinguish messages that are being
-- sent from waiting ones. hand is a message in the clock of a state.
local function leased(id, at) return table.concat({id, at.lane, at.created, at.account}, ' ') end
local function hand(id, at, state) return state == 'active' and leased(id, at) or id end

-- where reads what move and remove need of a message.
local function where(id)
  local m = redis.call('HMGET', message_key(id), 'lane', 'state', 'created', 'account', 'rank', 'shared', 'key', 'merge',
    'size', 'token', 'scheduled', 'weighed')
  return {lane = m[1], state = m[2], created = m[3], account = m[4], rank = m[5], shared = m[6], key = m[7], merge = m[8],
    size = m[9], token = m[10], scheduled = m[11], weighed = m[12] == '1'}
end

-- A message counts towards the quotas of its account and its token from acceptance until it ends or becomes a
-- dead letter. The messages of an account are the ones in its indexes. The hash quota has each owner's bytes,
-- and each token's messages. An owner is an account, or token:<id>.
--
-- Where the account has a quota, the script counts immediately, and the record says so: weighed. Otherwise the next event
-- carries the bytes in its field n, such as +241, and rates.lua adds them. So a quota that is set later finds them counted.
local function use(field, n)
  if redis.call('HINCRBY', prefix .. 'quota', field, n) < 1 then redis.call('HDEL', prefix .. 'quota', field) end
end
local function weigh(at, sign)
  if not at.size then return end
  if at.weighed then use('bytes ' .. at.account, sign .. at.size) else counted[#counted + 1] = (sign == '' and '+' or sign) .. at.size end
  if at.token then
    use('bytes token:' .. at.token, sign .. at.size)
    use('messages token:' .. at.token, sign .. 1)
  end
end

-- count_day counts accepted messages of an owner, in the hash of the day.
local function count_day(today, owner, n)
  if redis.call('HINCRBY', prefix .. 'quota:' .. today, owner, n) == n then
    redis.call('EXPIRE', prefix .. 'quota:' .. today, 172800)
  end
end

-- has_quota returns whether an owner is among the limits, see over.
local function has_quota(limits, owner)
  for one in string.gmatch(limits, '(%S+) %S+ %S+ %S+') do
    if one == owner then return true end
  end
  return false
end
local waiting_states = {'waiting', 'scheduled', 'delayed'} -- of their indexes

-- over returns the first quota without room for n more messages of an account, of some bytes together, as
-- "<owner> <quota> <used>", or nil if all have room. limits has an owner and its most messages, bytes and
-- messages of a day in turns; '-' means any number. It counts in as many partitions as a script may see, or
-- only in this one.
local function over(limits, seen, account, bytes, today, n)
  local parts = {prefix}
  for p = 1, tonumber(seen) or 0 do parts[p] = string.gsub(prefix, '{%d+}', '{' .. (p - 1) .. '}') end
  local function used(owner, name)
    local sum = 0
    for _, part in ipairs(parts) do
      if name == 'perDay' then
        sum = sum + (redis.call('HGET', part .. 'quota:' .. today, owner) or 0)
      elseif name == 'bytes' or owner ~= account then
        sum = sum + (redis.call('HGET', part .. 'quota', name .. ' ' .. owner) or 0)
      else
        for _, l in ipairs({'transactional', 'bulk'}) do
          for _, s in ipairs(waiting_states) do
            sum = sum + redis.call('ZCARD', part .. 'index:' .. l .. ':' .. s .. ':' .. owner)
          end
        end
      end
    end
    return sum
  end
  for owner, messages, octets, day in string.gmatch(limits, '(%S+) (%S+) (%S+) (%S+)') do
    for _, q in ipairs({{'messages', messages, n}, {'bytes', octets, bytes}, {'perDay', day, n}}) do
      local most = tonumber(q[2])
      local have = most and used(owner, q[1])
      if most and have + q[3] > most then return table.concat({owner, q[1], string.format('%.0f', have)}, ' ') end
    end
  end
end

-- move moves a message to the index and the clock of another state. The caller writes the field state, and knows
-- whether the message has a task, if at.queued is set.
local function move(id, at, to, score)
  local from, into = index_key(at.lane, at.state), index_key(at.lane, to)
  if from ~= into then
    strike(from, at, id)
    enlist(into, at, id)
  end
  if at.state == 'waiting' and not at.queued and redis.call('ZREM', backlog_key(at), id) == 1 then
    redis.call('HDEL', message_key(id), 'putOff')
  end
  if clocks[at.state] then redis.call('ZREM', clocks[at.state], hand(id, at, at.state)) end
  if clocks[to] then redis.call('ZADD', clocks[to], score, hand(id, at, to)) end
  if to == 'failed' then weigh(at, '-') elseif at.state == 'failed' then weigh(at, '') end
end

-- take_shared and leave_shared count the messages that are rendered from a shared content. A content without
-- messages stays for a while: a merge's first message may end before the last one comes. take_shared returns
-- false if the content does not exist. If sent messages' contents are kept, the key sharedKept lives as long
-- as the last of them, and the shared content without messages at least as long.
local shared_stays = 600
local function rest_shared(name)
  redis.call('PEXPIRE', shared_key(name), math.max(shared_stays * 1000, redis.call('PTTL', shared_kept_key(name))))
end
local function take_shared(name)
  if redis.call('EXISTS', shared_key(name)) == 0 then return false end
  if redis.call('HINCRBY', prefix .. 'sharedUsers', name, 1) == 1 then redis.call('PERSIST', shared_key(name)) end
  return true
end
local function leave_shared(name)
  if redis.call('HINCRBY', prefix .. 'sharedUsers', name, -1) > 0 then return end
  redis.call('HDEL', prefix .. 'sharedUsers', name)
  rest_shared(name)
end

-- keep_for keeps a sent message's content for some seconds. The caller removes the message.
local function keep_for(id, at, seconds)
  redis.call('EXPIRE', content_key(id), seconds)
  if at.shared and redis.call('PTTL', shared_kept_key(at.shared)) < seconds * 1000 then
    redis.call('SET', shared_kept_key(at.shared), '', 'EX', seconds)
  end
end

-- The field #outcome of a message's facts is "<weight> <outcome> <field of the fact>", for the weightiest
-- fact. forget_outcome takes a message out of the index of its outcome.
local function outcome_key(lane, outcome) return prefix .. 'outcome:' .. lane .. ':' .. outcome end
local function outcome_of(id)
  return string.match(redis.call('HGET', prefix .. 'facts:' .. id, '#outcome') or '', '^(%d+) (%a+)')
end
local function forget_outcome(id, lane, account)
  local _, outcome = outcome_of(id)
  if outcome then strike(outcome_key(lane, outcome), {account = account}, id) end
end

-- facts_stay is how long facts about a message that is not in the log are kept: longer than any reporter
-- repeats one.
local facts_stay = 259200

-- keep_dialogue keeps an attempt's SMTP dialogue, and up to dialogues_most dialogues of earlier attempts.
-- They go with the log entry.
local dialogues_most = 10
local function dialogues_key(id) return prefix .. 'dialogues:' .. id end
local function keep_dialogue(id, number, dialogue)
  local key, oldest = dialogues_key(id), math.huge
  redis.call('HSET', key, number, dialogue)
  if redis.call('HLEN', key) <= dialogues_most then return end
  for _, field in ipairs(redis.call('HKEYS', key)) do oldest = math.min(oldest, tonumber(field)) end
  redis.call('HDEL', key, string.format('%.0f', oldest))
end

-- enter writes a message's log entry. If record is '', there is no log. If it is '0', its campaign keeps it
-- out of the log, and may enqueue it again as long as facts stay. The list of ended messages has what
-- purge.lua needs to delete the entry.
local function enter(id, at, now, result, record)
  if record == '' or record == '0' then
    forget_outcome(id, at.lane, at.account)
    redis.call('SET', prefix .. 'ended:' .. id, '', 'EX', record == '0' and facts_stay or 300) -- accept.lua needs it if its client repeats the call
    redis.call('EXPIRE', prefix .. 'facts:' .. id, facts_stay)
    redis.call('DEL', dialogues_key(id))
    return
  end
  redis.call('SET', prefix .. 'ended:' .. id, record)
  redis.call('RPUSH', prefix .. 'ended', table.concat({string.format('%.0f', now), id, at.lane, result, at.account}, ' '))
  enlist(log_key(at.lane, result), at, id)
end

-- An idempotency key is "<fingerprint> <result> <memo>". The result is empty while the message lives; then
-- the key has no time to live, so it can't expire before its message. A mail merge's key is its fingerprint,
-- and '+' once one of its messages ended without being withdrawn. It has no time to live while the hash
-- merges counts a live message of it. All of them are in the partition of the key.
local print_size = 22

-- A fingerprint has several forms, separated by spaces: with a key of each secret, and without one. Another
-- process may seal contents or not, under this secret or the one before. The first form is stored. same
-- returns whether a stored one is of the same body.
local function stored(fingerprint) return string.match(fingerprint, '^%S+') end
local function same(print, fingerprint) return string.find(' ' .. fingerprint .. ' ', ' ' .. print .. ' ', 1, true) ~= nil end

-- used reads a key: the fingerprint, the memo, and its message's status as the email log names it. It returns
-- nil for a free key.
local statuses = {waiting = 'queued', scheduled = 'queued', delayed = 'queued', active = 'sending', failed = 'dead'}
local function used(key)
  local found = redis.call('GET', key)
  if not found then return nil end
  redis.call('SETRANGE', key, 0, string.sub(found, 1, 1)) -- changes nothing, but WAIT confirms the last write of its connection
  local print, result, memo = string.match(found, '^(%S+) (%l*) (.*)$')
  if not print then return found end
  if result == '' then result = statuses[redis.call('HGET', message_key(string.match(memo, '%w+')), 'state')] or '' end
  return print, memo, result
end

-- settle_merge sets the time to live of a mail merge's key when it may have no live message any more. The key
-- is free if all its messages were withdrawn.
local function settle_merge(merge, ended, keep_key)
  local key = idempotency_key(merge)
  if ended and redis.call('EXISTS', key) == 1 then redis.call('SETRANGE', key, print_size, '+') end
  if redis.call('HEXISTS', prefix .. 'merges', merge) == 1 then return end
  if redis.call('STRLEN', key) > print_size then redis.call('EXPIRE', key, keep_key) else redis.call('DEL', key) end
end

-- take_merge counts a message that has a place under the key of a mail merge; leave_merge counts one that ends.
local function take_merge(merge, fingerprint)
  if redis.call('HINCRBY', prefix .. 'merges', merge, 1) > 1 then return end
  redis.call('SET', idempotency_key(merge), fingerprint, 'NX') -- if it expired since it was claimed
  redis.call('PERSIST', idempotency_key(merge))
end
local function leave_merge(merge, ended, keep_key)
  if redis.call('HINCRBY', prefix .. 'merges', merge, -1) < 1 then redis.call('HDEL', prefix .. 'merges', merge) end
  settle_merge(merge, ended, keep_key)
end

-- close_key notes in an ending message's key how it ended, and keeps it for keep_key seconds. A withdrawn
-- message's key is free.
local function close_key(id, hash, result, taken_back, keep_key)
  local key = idempotency_key(hash)
  local print, memo = string.match(redis.call('GET', key) or '', '^(%S+) %l* (.*)$')
  if string.match(memo or '', '%w+') ~= id then return end -- it was lost, and is another message's now
  if taken_back then
    redis.call('DEL', key)
  else
    redis.call('SET', key, table.concat({print, result, memo}, ' '), 'EX', keep_key)
  end
end

-- remove deletes a live message, and its content unless that stays, and writes its log entry. It keeps the
-- idempotency key for keep_key seconds, unless the message was withdrawn.
local function remove(id, at, now, result, record, keep_key, taken_back, stays)
  strike(index_key(at.lane, at.state), at, id)
  if at.state == 'waiting' then redis.call('ZREM', backlog_key(at), id) end
  if clocks[at.state] then redis.call('ZREM', clocks[at.state], hand(id, at, at.state)) end
  if at.state ~= 'active' then redis.call('ZREM', prefix .. 'unqueued', id) end
  if at.shared then leave_shared(at.shared) end
  if at.key then close_key(id, at.key, result, taken_back, keep_key) end
  if at.merge then leave_merge(at.merge, not taken_back, keep_key) end
  if at.state ~= 'failed' then weigh(at, '-') end
  redis.call('DEL', message_key(id), envelope_key(id), status_key(id), stays and message_key(id) or content_key(id))
  enter(id, at, now, result, record)
end

-- forget_texts deletes the kept texts of ended messages, and returns how many there were. A content that is kept for its
-- own sake stays.
local function forget_texts(ids)
  local texts, gone = prefix .. 'texts', {}
  for i, text in ipairs(redis.call('HMGET', texts, unpack(ids))) do
    if text == 'c' then gone[#gone + 1] = content_key(ids[i]) end
  end
  if #gone > 0 then redis.call('DEL', unpack(gone)) end
  return redis.call('HDEL', texts, unpack(ids))
end

-- remember_text keeps an ended message's text until the search index has it, or until its log entry is
-- deleted: 't' and the text, or 'c' for a content that stays. Then it returns true. Beyond texts_most some
-- texts go: about each 32nd message looks, and forgets 64 of them.
local texts_most = 100000
local function remember_text(id, record, text, now)
  if text == '' or record == '' or record == '0' then return false end
  local texts = prefix .. 'texts'
  if tonumber(now) % 32 == 0 and redis.call('HLEN', texts) >= texts_most then forget_texts(redis.call('HRANDFIELD', texts, 64)) end
  redis.call('HSET', texts, id, text)
  return text == 'c'
end

-- note_addressed notes a message's recipients, so that it is found by an address (record_addressed.go). notes
-- has a bucket and the tags of its note in turns. To keep lists from growing forever, each 32nd note checks
-- the 64 oldest notes of a list, and removes notes of messages that are gone.
local function note_addressed(id, notes, keep)
  for bucket, tags in string.gmatch(notes, '(%S+) (%S+)') do
    local key = prefix .. 'addressed:' .. bucket
    if redis.call('RPUSH', key, tags .. id) % 32 == 0 then
      local stay = {}
      for _, note in ipairs(redis.call('LPOP', key, 64)) do
        local noted = string.sub(note, -26)
        if redis.call('EXISTS', message_key(noted), prefix .. 'ended:' .. noted) > 0 then table.insert(stay, 1, note) end
      end
      if #stay > 0 then redis.call('LPUSH', key, unpack(stay)) end
    end
    redis.call('EXPIRE', key, keep)
  end
end

-- wake gives the message a new epoch, whose task id no older task has. It queues the task if form is given
-- (enqueue_form), else it notes that the task is not queued yet.
local function wake(id, now, form)
  local epoch = redis.call('HINCRBY', message_key(id), 'epoch', 1)
  if form then
    enqueue_form(form, string.format('%s.%.0f', id, epoch))
  else
    redis.call('ZADD', prefix .. 'unqueued', now, id)
  end
  return tostring(epoch)
end

-- follow takes the oldest messages out of the backlog and wakes them, if the window has room for at least
-- `least` messages and none waits in the given line. backlog is how many messages it has. It returns their
-- ids and epochs in turns. The caller enqueues their tasks, unless form is given.
local function follow(at, backlog, window, least, now, line, form)
  if backlog == 0 then return {} end
  local room, woken = window - under_way(at, backlog), {}
  if room < least or line and redis.call('EXISTS', held_key(line)) == 1 then return woken end
  local oldest = redis.call('ZPOPMIN', backlog_key(at), room)
  for i = 1, #oldest, 2 do
    woken[i], woken[i + 1] = oldest[i], wake(oldest[i], now, form)
  end
  return woken
end

-- line_up moves the oldest message of the backlog into a line of messages that wait for a relay (unhold.lua).
local function line_up(at, hold, reason, due)
  local id = redis.call('ZPOPMIN', backlog_key(at))[1]
  if not id then return end
  local moved = where(id)
  redis.call('HSET', message_key(id), 'state', 'delayed', 'due', due, 'held', hold, 'reason', reason, 'putOff', '')
  move(id, moved, 'delayed', due)
  redis.call('ZADD', held_key(hold), turn(moved), id)
  redis.call('SADD', prefix .. 'held', hold)
end
