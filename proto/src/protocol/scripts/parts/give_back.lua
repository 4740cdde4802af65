-- After holds and free: ends the holds of an owner, or an acquisition that has none (abandon).
--
-- KEYS 1 latch of the owner, 2 number of available permits, 3 the set of holds, 4 the channel
local function give_back(members,each)
  local latch,n=redis.call('GET',KEYS[1])
  -- C3: a last try may have written this tombstone before the newest request without a bound was
  -- sent.
  if latch and latch:sub(1,1)=='x' then longer(KEYS[1],life()) n=tonumber(latch:sub(2)) else
    n=free(members,each)
    redis.call('SET',KEYS[1],'x'..n,'PX',life())
  end
  return out(n==#members and 1 or 0,tostring(n),0)
end
