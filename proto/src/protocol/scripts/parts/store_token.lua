-- Stores a fencing token. A token key without an end is a fenced lock's, which Redisson keeps for
-- ever; it stays without one. Any other token key lasts for at least `kept` ms, and no request
-- shortens its life: if the key expired while its token is ahead of Redis' clock, the next token
-- would be smaller. So it lasts until the clock has passed the token, but at most a day.
local function store_token(key,token,kept,for_ever)
  local ms=redis.call('PTTL',key)
  if for_ever or ms==-1 then redis.call('SET',key,token) return end
  local ahead=math.ceil((token-t[1]*1000000-t[2])/1000)
  redis.call('SET',key,token,'PX',math.max(kept,ms,math.min(ahead,86400000)))
end
