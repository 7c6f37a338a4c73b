-- permit allows or denies a run to send under one prefix, unless a later version did.
--
-- KEYS[1] permission
-- ARGV: version allow
-- Answer: OK
-- Atomic because an earlier change that comes late must not undo a later one.
local has = tonumber(string.match(redis.call('GET', KEYS[1]) or '', '^%d+') or '0')
if tonumber(version) >= has then redis.call('SET', KEYS[1], version .. ' ' .. (allow == '1' and '1' or '0')) end
return OK
