-- After sweep: returns the longest remaining ms of the read holds in a hash, without those of the
-- field `but`. 0: no reader is alive. -1: not known, since a read hold has no end, or since there
-- are too many fields to read, although the hash was swept; the hash then keeps its end.
--
-- A read hold is alive while one of its timeout keys exists. Redisson numbers them from 1 to the
-- hold count. All of them are read before anything is written, so that Redis rejects a user who may
-- not read them before anything has changed.
local function alive(n,kp,but)
  if redis.call('HLEN',n)>128 then
    sweep(n,kp,256,but)
    if redis.call('HLEN',n)>128 then return -1 end
  end
  local h,m,k=redis.call('HGETALL',n),0,0
  for i=1,#h,2 do
    local c=h[i]~='mode' and h[i]~=but and h[i]:sub(-6)~=':write' and tonumber(h[i+1])
    if c and c>0 then
      k=k+c
      if k>256 then return -1 end
      for j=c,1,-1 do
        local x=redis.call('PTTL',kp..':'..h[i]..':rwlock_timeout:'..j)
        if x==-1 then return -1 end
        m=math.max(m,x)
      end
    end
  end
  return m
end
