-- The queue of a fair lock: recognizes waiters of ours, removes waiters, and elects the next one.
--
-- KEYS 2 the lock's name, 3 queue, 4 timeouts (both Redisson's), 5 beats, 6 arrivals,
--      7 watch, 8 channel
-- ARGV 6 life of a waiter   7 skew   8 short   9 long: all in ms
-- Returned by `elect_head`: the field that is next, or nothing; true if that field was not checked,
--         since too many heads were dead
--
-- May be sent twice: a second run finds the dead waiters removed and publishes to the same head.
local life_ms,skew,short,long=tonumber(ARGV[6]),tonumber(ARGV[7]),tonumber(ARGV[8]),tonumber(ARGV[9])
-- F1: our UUIDs are of version 8, Redisson's of version 4.
local function is_ours(h) return h:sub(9,9)=='-' and h:sub(15,15)=='8' end
local function score(key,h) return tonumber(call('ZSCORE',KEYS[key],h)) end
local function is_free() return call('EXISTS',KEYS[2])==0 end
local function drop_scores(h) for key=4,6 do call('ZREM',KEYS[key],h) end end
local function dequeue(h) call('LREM',KEYS[3],0,h) drop_scores(h) end
-- Writes a score. Sets the end before the write, perhaps on a missing key: Redis then rejects a
-- user who may not set an end before a key without one is written.
local function set_score(key,n,h) local ms=record_ttl()+life_ms extend_ttl(KEYS[key],ms) call('ZADD',KEYS[key],n,h) extend_ttl(KEYS[key],ms) end
-- Publishes to a waiter. Returns 1 if the message had a listener, or if Redis does not report the
-- number of listeners; otherwise 0.
local function notify(h)
  local n=0
  for _,how in ipairs({'PUBLISH','SPUBLISH'}) do
    if pub=='B' or how:sub(1,1)==pub then n=n+(tonumber(redis.pcall(how,KEYS[8]..':'..h,'0')) or 1) end
  end
  return n>0 and 1 or 0
end
-- Removes dead heads, publishes to the first head that is alive, and returns it. `self_id` is the
-- waiter that sent the request, so it is alive. `force`: publish even if the last message to that
-- head is less than a second old.
local function elect_head(self_id,force)
  local free=is_free()
  for _=1,128 do
    local h=call('LINDEX',KEYS[3],0)
    if not h or h==self_id then return h end
    local z=score(4,h)
    local since,sent,subs,noted=(call('GET',KEYS[7]) or ''):match('^(%d+) (%d+) (%d) (.*)$')
    if noted==h then since,sent,subs=tonumber(since),tonumber(sent),tonumber(subs) else since,sent,subs=now,0,0 end
    -- The lock was held at the last look, or the last look is too old: the grace period begins now.
    if since==0 or now-sent>short then since=now end
    local due,dead,to=force or now-sent>=1000
    if is_ours(h) then
      -- F4: its own deadline decides. Without one (evicted, or lost in a failover), it gets one
      -- life.
      local ends=score(5,h)
      if not ends then ends=now+life_ms set_score(5,ends,h) end
      dead=ends<=now
      if not dead then
        if not z or z<ends+skew then to=ends+skew end
        if free and due then notify(h) sent=now end
      end
    else
      -- F8: a waiter of Redisson's is judged by its reaction to the message that the lock is free,
      -- not by its score.
      if free then
        if due then subs=notify(h) sent=now end
        dead=subs==0 and (not z or z<=now) or now-since>=(subs==1 and long or short)
      else
        since=0
        if due and (not z or z<now+long) then subs=notify(h) sent=now end
      end
      -- F9: corrects a score for which Redisson's waiters would evict this waiter, or never would.
      if subs==1 and (not z or z<now+long) then to=now+2*long
      elseif not z then to=now+short
      elseif z>now+86400000 then to=now+86400000 end
    end
    if not dead then
      if to then call('ZADD',KEYS[4],to,h) end
      call('SET',KEYS[7],since..' '..sent..' '..subs..' '..h,'PX',2*long)
      return h
    end
    -- Its beat and its arrival record stay: a waiter of ours that was only silent gets its place
    -- back.
    call('LPOP',KEYS[3]) call('ZREM',KEYS[4],h)
    force=true
  end
  local h=call('LINDEX',KEYS[3],0)
  return h,h and h~=self_id
end
