-- Returns the newest fencing token that a guarded key has seen. Writes nothing, but is sent as a
-- script that may write, so that the primary executes it.
--
-- KEYS  1 the key's fence
-- ARGV  none of its own
-- Reply 1 newest token, how long it is still remembered in ms (-1: for ever)   0 none is remembered
--
-- May be sent twice: it changes nothing.
local fence=redis.call('GET',KEYS[1])
return out(fence and 1 or 0,fence and fence:match('^%d+') or '0',redis.call('PTTL',KEYS[1]))
