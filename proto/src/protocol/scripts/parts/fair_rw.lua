-- The state of a fair read-write lock: its holders, its queue, the heartbeats of its waiters, and
-- the registry of its namespace.
--
-- KEYS 2 holders: member -> end of its lease in ms
--      3 queue: waiting member -> ticket in microseconds, strictly rising
--      4 writers: the exclusive members of the queue, with the same tickets
--      5 beats: waiting member -> the time in ms until which it counts as alive
--      6 last: hash with t, the last token; k, its mode; q, the last ticket; st, the token of the
--         last steal
--      7 names of the namespace that are in use, all with score 0
--      8 ends: name -> the time in ms until which a hold or a wait of that name can last
--
-- All but `last` are sorted sets. A member is `<mode><owner>|<client id>`; the mode is `x`
-- (exclusive) or `s` (shared). An entry is live while its score is above `now`, whether or not a
-- script has removed it yet (W8). The channel of an owner is the text of its latch.
local HOLDERS,QUEUE,WRITERS,BEATS,LAST,NAMES,ENDS=KEYS[2],KEYS[3],KEYS[4],KEYS[5],KEYS[6],KEYS[7],KEYS[8]
-- How many waiters one call notifies, and how many holders; how many dead entries it reads at once.
local WINDOW,SLICE=64,64
local live='('..string.format('%.0f',now)
local name=HOLDERS:sub(4,-13)
local function text(n) return string.format('%.0f',n) end
local function score(key,m) return tonumber(call('ZSCORE',key,m) or nil) end
local function is_exclusive(m) return m:sub(1,1)=='x' end
local function live_holder() return call('ZRANGEBYSCORE',HOLDERS,live,'+inf','LIMIT',0,1)[1] end
local function count_live(key) return call('ZCOUNT',key,live,'+inf') end
local function last_end() return tonumber(call('ZRANGE',HOLDERS,-1,-1,'WITHSCORES')[2] or nil) end
-- Writes a score. Sets the end before the write, perhaps on a missing key: Redis then rejects a
-- user who may not set an end before a key without one is written.
local function set_score(key,n,m,ms) extend_ttl(key,ms) call('ZADD',key,text(n),m) extend_ttl(key,ms) end
-- Returns whether the member was in the queue.
local function dequeue(m) local n=call('ZREM',QUEUE,m) call('ZREM',WRITERS,m) call('ZREM',BEATS,m) return n==1 end
local function notify(m,message) publish(HOLDERS:sub(1,-13)..':'..m:match('^.([^|]*)'),message) end
-- Notifies the first WINDOW live holders that their holds end, and ends the holds of all.
local function end_holds()
  for _,m in ipairs(call('ZRANGEBYSCORE',HOLDERS,live,'+inf','LIMIT',0,WINDOW)) do notify(m,'0') end
  call('UNLINK',HOLDERS)
end
-- Returns how many shared members may enter beside the live holders; 0 beside an exclusive one.
local function places(max)
  local h=live_holder()
  if not h then return max end
  return is_exclusive(h) and 0 or math.max(0,max-count_live(HOLDERS))
end
-- Returns `n` members of the queue, from place `at` on. An acquisition has run this command before
-- it writes the hold, so a user without the right to it gets no hold.
local function queued_at(at,n) return call('ZRANGEBYSCORE',QUEUE,'-inf','+inf','LIMIT',at,n) end
-- W10: notifies the waiters that can enter now, at most WINDOW, but not the caller, `self_id`.
local function wake(max,self_id)
  local n=places(max)
  if n==0 then return end
  for i,m in ipairs(queued_at(0,math.min(n,WINDOW))) do
    if is_exclusive(m) then
      if i==1 and m~=self_id and not live_holder() then notify(m,'1') end
      return
    end
    if m~=self_id then notify(m,'1') end
  end
end
-- W10, after one place among the first shared waiters became vacant: notifies the waiter that moved
-- among the first WINDOW or into the vacant place.
local function wake_next(max,self_id)
  local at=math.min(places(max),WINDOW)-1
  local m=at>=0 and queued_at(at,1)[1]
  if not m or m==self_id or is_exclusive(m) then return end
  if call('ZCOUNT',WRITERS,'-inf',text(score(QUEUE,m)))==0 then notify(m,'1') end
end
-- Removes a waiter and notifies those that can enter because of that.
local function leave(m,max)
  local rank=call('ZRANK',QUEUE,m)
  if not dequeue(m) then return end
  if rank==0 or is_exclusive(m) then wake(max) else wake_next(max) end
end
-- Registry (W17): the name is in use until `to` at least. The entry is written ahead by `slack`, so
-- that not every poll writes. Removes at most 4 names whose time is over.
local function register(to,slack)
  for _,n in ipairs(call('ZRANGEBYSCORE',ENDS,'-inf',now,'LIMIT',0,4)) do call('ZREM',NAMES,n) call('ZREM',ENDS,n) end
  local e=score(ENDS,name)
  if e and e>=to and score(NAMES,name) then return end
  local ms=to+slack-now+1000
  set_score(NAMES,0,name,ms)
  set_score(ENDS,math.max(e or 0,to+slack),name,ms)
end
local function unregister()
  if not live_holder() and count_live(BEATS)==0 then call('ZREM',NAMES,name) call('ZREM',ENDS,name) end
end
-- The value of a reply -3: 1 if a steal was granted after the grant of this token, else 0.
local function is_stolen(token)
  local st=tonumber(call('HGET',LAST,'st') or nil)
  return st and tonumber(token) and tonumber(token)<st and '1' or '0'
end
