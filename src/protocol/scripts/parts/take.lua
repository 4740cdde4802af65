-- After mint, holds, evict, lease and listeners: takes permits of a semaphore, each hold of its members or none of them.
--
-- KEYS 1 latch of the owner, 2 how many are available, 3 the set of holds, 4 the channel, 5 token key
-- ARGV 6 lease in ms, or empty   7 last try: 1 or 0   8 how long the token key is kept in ms
-- Fails with LIMIT if more than `max` members would be held (N2). Ended holds are evicted before that.
local function take(members,p,skew,max,weigh,tells)
  local latch,set,lease=redis.call('GET',KEYS[1]),KEYS[3],tonumber(ARGV[6])
  if latch and latch:sub(1,1)=='x' then longer(KEYS[1],life()) return out(-2,'0',0) end
  if late() then return out(-1,'0',0) end
  -- C3: no lease heals what is done too late.
  if not (bound or lease) then return out(-4,'0',0) end
  if latch then
    local ms=extend(set,members,lease,skew)
    return out(ms and 2 or -3,latch,ms or 0)
  end
  -- Held without a latch: it was taken away. The release gives back what is there.
  for _,m in ipairs(members) do if redis.call('ZSCORE',set,m) then return out(-3,'0',0) end end
  local v=evict(now-skew,weigh)
  -- Nobody holds permits of a semaphore that is not there.
  if weigh and not v then redis.call('UNLINK',set) end
  if not v or v<p then
    if ARGV[7]=='1' then redis.call('DEL',KEYS[1]) redis.call('SET',KEYS[1],'x0','PX',life()) end
    local at=tonumber(redis.call('ZRANGE',set,0,0,'WITHSCORES')[2])
    return out(0,v and string.format('%.0f',v) or '',at and at<never and math.max(at+skew-now,0) or -1)
  end
  if redis.call('ZCOUNT',set,now-skew+1,'+inf')+#members>max then return redis.error_reply('LIMIT the semaphore has too many holds') end
  local token=mint(KEYS[5],ARGV[8])
  if not token then return out(-6,'0',0) end
  redis.call('SET',KEYS[1],token,'PX',life(lease))
  -- The holds end with their semaphore, as Redisson has it. The end first, maybe on what is not there: a user who may not set one is
  -- refused before a hold is written.
  local ms=redis.call('PTTL',KEYS[2])
  local function limit() if ms>0 then redis.call('PEXPIRE',set,ms) end end
  limit()
  -- Counted last: a user who may not do one of these has taken nothing.
  set_ends(set,ends(lease,skew),members)
  limit()
  redis.call('INCRBY',KEYS[2],-p)
  -- None is left: whoever was woken as well and has not asked yet need not. As many zeros as listen, since to Redisson it is a number
  -- of permits.
  if tells and v==p then say(KEYS[4],('0'):rep(math.min(math.max(listeners(KEYS[4]),1),20))) end
  return out(1,token,lease or -1)
end
