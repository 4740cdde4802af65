-- Returns the count of a count-down latch. Writes nothing, but is sent as a script that may write,
-- so that the primary executes it.
--
-- KEYS  1 the latch's name
-- ARGV  none of its own
-- Reply 1 closed: its count   0 open: 0
--
-- May be sent twice: it changes nothing.
local v=redis.call('GET',KEYS[1])
local closed=v and v+0>0
return out(closed and 1 or 0,closed and v or '0',0)
