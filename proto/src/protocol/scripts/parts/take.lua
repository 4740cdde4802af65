-- After mint, holds, evict, lease and listeners: acquires permits of a semaphore, one hold for each
-- of its members, all or none.
--
-- KEYS 1 latch of the owner, 2 number of available permits, 3 the set of holds, 4 the channel, 5
--         token key
-- ARGV 6 lease in ms, or empty   7 last try: 1 or 0   8 how long the token key is kept in ms
--
-- Fails with LIMIT if more than `max` members would be held (N2). Ended holds are evicted before
-- that.
local function take(members,p,skew,max,weigh,tells)
  local latch,set,lease=redis.call('GET',KEYS[1]),KEYS[3],tonumber(ARGV[6])
  if latch and latch:sub(1,1)=='x' then longer(KEYS[1],life()) return out(-2,'0',0) end
  if late() then return out(-1,'0',0) end
  -- C3: without a lease no late execution is ever undone.
  if not (bound or lease) then return out(-4,'0',0) end
  if latch then
    local ms=extend(set,members,lease,skew)
    return out(ms and 2 or -3,latch,ms or 0)
  end
  -- Held, but the latch was evicted. The release gives back what is in the set.
  for _,m in ipairs(members) do if redis.call('ZSCORE',set,m) then return out(-3,'0',0) end end
  local v=evict(now-skew,weigh)
  -- A semaphore that does not exist has no holders.
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
  -- The holds end with their semaphore, as in Redisson. The end is set before the write, perhaps on
  -- a missing key: Redis then rejects a user who may not set an end before a hold is written.
  local ms=redis.call('PTTL',KEYS[2])
  local function limit() if ms>0 then redis.call('PEXPIRE',set,ms) end end
  limit()
  -- The number is changed last: a user without the right to one of these commands has taken
  -- nothing.
  set_ends(set,ends(lease,skew),members)
  limit()
  redis.call('INCRBY',KEYS[2],-p)
  -- No permit is left, so a waiter that was woken and has not yet retried need not do so. The
  -- message has as many zeros as there are listeners, since Redisson reads it as a number of
  -- permits.
  if tells and v==p then say(KEYS[4],('0'):rep(math.min(math.max(listeners(KEYS[4]),1),20))) end
  return out(1,token,lease or -1)
end
