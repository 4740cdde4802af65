-- How long the read holds in a hash still last: the longest remaining ms of all but one field's. 0: none is alive. -1: not
-- known, since one has no end, or there are too many to look at; then nothing is pruned, and the hash keeps its end.
--
-- A read hold is alive while one of its timeout keys is there, which Redisson numbers from 1 to its hold count. These keys
-- are computed, since nobody knows all readers, so that scripts with this part cannot be run with key locking (build.rs); they
-- lie in the object's slot. It only reads, so that whoever may not read
-- them is refused before anything is written.
local function alive(n,kp,but)
  if redis.call('HLEN',n)>128 then return -1 end
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
