-- with fair_rw
-- Ends a hold of a fair read-write lock, or a wait for it (abandon), so that no copy of it can be
-- granted any more, and publishes to the waiters that can enter now.
--
-- KEYS  1 latch of the owner, 2 to 8 as in parts/fair_rw.lua, 9 latch of the previous owner, if
--         there is one
-- ARGV  5 member   6 max holders   7 member of the previous owner, or empty
--       8 how long that owner is remembered in ms
-- Reply 1 released: it was held, by this owner or the previous   0 was not held, or not any more
--
-- May be sent twice: the verdict is recorded in the latch and repeated, and nothing else is done.
-- The first write is a deletion, so it works when memory is full (C5). Not rejected when late: the
-- bound only sizes the tombstone (C8).
local max=tonumber(ARGV[6])
local latch=call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then extend_ttl(KEYS[1],record_ttl()) return out(tonumber(latch:sub(2)),'0',0) end
local held=0
for _,m in ipairs({ARGV[5],KEYS[9] and ARGV[7]}) do
  local e=score(HOLDERS,m)
  if call('ZREM',HOLDERS,m)==1 then
    if e>now then held=1 end
    -- Also if the lease had ended: no other script finds this entry any more.
    if live_holder() then wake_next(max) else wake(max) end
  end
  leave(m,max)
end
call('SET',KEYS[1],'x'..held,'PX',record_ttl())
if KEYS[9] then call('SET',KEYS[9],'x'..held,'PX',math.max(record_ttl(),tonumber(ARGV[8]))) end
unregister()
return out(held,'0',0)
