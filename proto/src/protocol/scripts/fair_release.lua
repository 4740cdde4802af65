-- with fair
-- Ends a hold of a fair lock, or a wait for it (abandon), so that no copy of it can be granted any
-- more, and publishes to the next waiter.
--
-- KEYS  1 latch of the owner, 2 to 8 as in parts/fair.lua, 9 latch of the previous owner, if there
--         is one
-- ARGV  5 owner field   6 to 9 as in parts/fair.lua   10 field of the previous owner, or empty
--       11 how long that owner is remembered in ms
-- Reply 1 released: it was held, by this owner or the previous   0 was not held, or not any more
--
-- May be sent twice: the verdict is recorded in the latch and repeated, and nothing else is done.
-- The first write is a deletion, so it works when memory is full (C5). Not rejected when late: the
-- bound only sizes the tombstone (C8).
local latch=call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then longer(KEYS[1],life()) return out(tonumber(latch:sub(2)),'0',0) end
local held=0
for _,h in ipairs({ARGV[5],KEYS[9] and ARGV[10]}) do held=math.max(held,call('HDEL',KEYS[2],h)) leave(h) end
call('SET',KEYS[1],'x'..held,'PX',life())
if KEYS[9] then call('SET',KEYS[9],'x'..held,'PX',math.max(life(),tonumber(ARGV[11]))) end
if free() then head(nil,true) end
return out(held,'0',0)
