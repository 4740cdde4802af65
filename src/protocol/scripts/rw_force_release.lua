-- with once
-- Ends whatever holds one side of a read-write lock has, whoever holds them; of the write side, the reads inside as well.
--
-- KEYS  1 record of this request, 2 the lock's name, 3 its channel
-- ARGV  5 window in ms   6 the side: `read` or `write`
-- Reply 1 was held and is free now   0 was not held   and those of parts/once.lua
--
-- May be sent twice: the answer is recorded under the request id and repeated, so a copy never throws out the next holder.
-- Timeout keys of readers are left to end by themselves, as Redisson does: without the field they count for nothing.
local held=redis.call('HGET',KEYS[2],'mode')==ARGV[6] and redis.call('UNLINK',KEYS[2]) or 0
if held==1 then say(KEYS[3],ARGV[6]=='read' and '0' or '1') end
return done(held,'0')
