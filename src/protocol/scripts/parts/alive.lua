-- After sweep: how long the read holds in a hash still last: the longest remaining ms of all but one field's. 0: none is alive. -1: not
-- known, since one has no end, or there are too many to look at, although the hash was swept; then it keeps its end.
--
-- A read hold is alive while one of its timeout keys is there, which Redisson numbers from 1 to its hold count. All of them are
-- read before anything is written, so that a user who may not read them is refused first.
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
