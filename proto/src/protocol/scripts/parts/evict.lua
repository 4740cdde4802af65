-- After holds: removes the holds that had ended by the time `over` and gives their permits back: at
-- most 500, so that no command blocks Redis for long. Returns the number of available permits after
-- that.
local function evict(over,weigh)
  local v,found=available(),redis.call('ZRANGEBYSCORE',KEYS[3],0,over,'LIMIT',0,500)
  if #found>0 then redis.call('ZREM',KEYS[3],unpack(found)) end
  return give(v,weight(found,weigh))
end
