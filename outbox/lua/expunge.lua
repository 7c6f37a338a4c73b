-- expunge deletes a log entry, or replaces it for the message's other recipients, and deletes the rest of its
-- content, which names all of them. The list of ended messages keeps its line, which names no one, until
-- purge.lua reaches it.
--
-- KEYS[1] any key of the partition
-- ARGV: id lane result account reference record
--   reference  name of the key with the hashes of the recipients
--   record     the new entry; '' if it is deleted
-- Result 1 if there was an entry
-- Atomic because an index entry without its record would be counted but not shown.

local key = prefix .. 'ended:' .. id
redis.call('HDEL', prefix .. 'texts', id)
redis.call('DEL', content_key(id), prefix .. 'reference:' .. reference, dialogues_key(id)) -- dialogues name all recipients
if redis.call('EXISTS', key) == 0 then return 0 end
if record ~= '' then
  redis.call('SET', key, record)
  return 1
end
forget_outcome(id, lane, account)
redis.call('DEL', key, prefix .. 'facts:' .. id)
strike(log_key(lane, result), {account = account}, id)
return 1
