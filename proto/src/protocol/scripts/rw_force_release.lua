-- with once
-- Ends all holds of one side of a read-write lock, whichever owners have them; for the write side,
-- also the reads inside.
--
-- KEYS  1 record of this request, 2 the lock's name, 3 its channel
-- ARGV  5 window in ms   6 the side: `read` or `write`
-- Reply 1 was held and is free now   0 was not held   and those of parts/once.lua
--
-- May be sent twice: the reply is recorded under the request id and repeated, so a copy never ends
-- the next hold. Timeout keys of readers end by themselves, as with Redisson: without the field
-- they do not count.
local held=redis.call('HGET',KEYS[2],'mode')==ARGV[6] and redis.call('UNLINK',KEYS[2]) or 0
if held==1 then say(KEYS[3],ARGV[6]=='read' and '0' or '1') end
return done(held,'0')
