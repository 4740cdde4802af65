-- After holds: takes out the holds that were over by a time and gives their permits back: 500 at a time, since a command takes
-- no more than some thousands of arguments, and 2000 at the most, so that nobody else is kept from Redis. Answers what is
-- available then.
local function evict(over,weigh)
  local v,p,found=available(),0
  for _=1,4 do
    found=redis.call('ZRANGEBYSCORE',KEYS[3],0,over,'LIMIT',0,500)
    if #found>0 then redis.call('ZREM',KEYS[3],unpack(found)) end
    p=p+weight(found,weigh)
    if #found<500 then break end
  end
  return give(v,p)
end
