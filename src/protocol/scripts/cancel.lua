-- Sees to it that a request that is done once (parts/once.lua) is never done, or tells its answer if it has been.
--
-- KEYS  1 record of that request
-- ARGV  5 window in ms; the request's own id and bound
-- Reply the recorded answer, ms 1   -2 cancelled: never done and never will be
--      -4 a bound is required   -5 later than bound and window: cannot be told any more
--
-- May be sent twice: what it writes is what it finds. Its first write is a deletion, so it works when memory is full (C5).
local window=tonumber(ARGV[5])
local record=redis.call('GET',KEYS[1])
if record and record~='x' then local code,value=record:match('^(%-?%d+):(.*)$') return out(tonumber(code),value,1) end
if not record then
  if not bound then return out(-4,'0',0) end
  if now>bound+window then return out(-5,'0',0) end
end
redis.call('DEL',KEYS[1])
redis.call('SET',KEYS[1],'x','PX',life()+window)
return out(-2,'0',0)
