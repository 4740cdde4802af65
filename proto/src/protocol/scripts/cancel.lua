-- Cancels an idempotent request (parts/once.lua) so that it is never executed, or returns its
-- recorded reply if it was executed.
--
-- KEYS  1 record of that request
-- ARGV  5 window in ms; the request's own id and bound
-- Reply the recorded reply, ms 1   -2 cancelled: not executed and never will be
--      -4 a bound is required   -5 later than bound and window: no longer known
--
-- May be sent twice: a second run finds the record that the first one wrote. The first write is a
-- deletion, so it works when memory is full (C5).
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
