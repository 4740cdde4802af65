-- R9: removes fields of dead readers from the hash of a read-write lock. Checks at most `most`
-- fields, from a random one on, and only fields of ours, which have one timeout key; dead readers
-- of Redisson's are left to Redisson. The field `but` stays.
--
-- Timeout keys are computed, since no client knows all readers, so scripts with this part cannot
-- run with key locking (build.rs); the keys are in the object's slot. They are read before anything
-- is written, so that Redis rejects a user who may not read them before anything has changed.
local removed,seen=0,1
local function sweep(n,kp,most,but)
  local all=call('HLEN',n)
  local cursor,page=unpack(call('HSCAN',n,all>most and t[2] or 0,'COUNT',most))
  -- The slice began near the end of the hash: it continues at the beginning.
  if cursor=='0' and all>most and #page<2*most then
    for _,x in ipairs(call('HSCAN',n,0,'COUNT',most)[2]) do page[#page+1]=x end
  end
  local size,dead=#page/2,{}
  seen=math.min(size,most)
  for i=1,seen do
    local f=page[2*((t[2]+i)%size)+1]
    -- No reader: a slice that earlier sweeps have emptied may contain nothing else.
    if f=='mode' then seen=seen-1
    elseif f:sub(9,9)=='-' and f:sub(15,15)=='8' and f:sub(-6)~=':write' and f~=but
      and call('EXISTS',kp..':'..f..':rwlock_timeout:1')==0 then dead[#dead+1]=f end
  end
  if #dead>0 then removed=call('HDEL',n,unpack(dead)) end
end
