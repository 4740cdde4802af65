-- After holds: takes out the holds that were over by a time and gives their permits back: 500 at the most, so that no command keeps
-- other clients from Redis. Answers what is available then.
local function evict(over,weigh)
  local v,found=available(),redis.call('ZRANGEBYSCORE',KEYS[3],0,over,'LIMIT',0,500)
  if #found>0 then redis.call('ZREM',KEYS[3],unpack(found)) end
  return give(v,weight(found,weigh))
end
