-- After holds and remove_holds: ends the holds of an owner, or an acquisition that has none
-- (abandon).
--
-- KEYS 1 latch of the owner, 2 number of available permits, 3 the set of holds, 4 the channel
local function release_holds(members,each)
  local latch,n=call('GET',KEYS[1])
  -- C3: a last try may have written this tombstone before the newest request without a bound was
  -- sent.
  if latch and latch:sub(1,1)=='x' then extend_ttl(KEYS[1],record_ttl()) n=tonumber(latch:sub(2)) else
    n=remove_holds(members,each)
    call('SET',KEYS[1],'x'..n,'PX',record_ttl())
  end
  return out(n==#members and 1 or 0,tostring(n),0)
end
