-- indexed deletes the kept texts of ended messages. A content that is kept for its own sake stays.
--
-- KEYS[1] texts
-- ARGV: ids...
-- Result how many texts there were
-- Atomic because a content without its entry would stay for ever. A live message has no entry, so its content stays.

return forget_texts({unpack(ARGV, ids)})
