-- After holds: keeps the number of available permits a Java int, as which Redisson reads it.
--
-- KEYS 2 number of available permits, 3 the set of holds
--
-- Returns how many permits are held.
local function held_permits(weigh)
  local n,p=call('ZCARD',KEYS[3]),0
  if not weigh then return n end
  for i=0,n-1,500 do p=p+weight(call('ZRANGE',KEYS[3],i,i+499),true) end
  return p
end
-- Returns the error LIMIT if the number, now `v`, would leave the range when `p` is added, or once
-- all held permits have been given back after that. Otherwise nil. No change towards the range is
-- refused.
local function out_of_range(v,p,weigh)
  if p>0 and v+p+held_permits(weigh)>2147483647 or p<0 and v+p<-2147483648 then
    return redis.error_reply('LIMIT the number of permits would leave the range of a Java int')
  end
end
