-- with fair_rw
-- Acquires a fair read-write lock, joins its queue, or renews the heartbeat of a waiter.
--
-- KEYS  1 latch of the owner, 2 to 8 as in parts/fair_rw.lua, 9 latch of the previous owner, if
--         there is one
-- ARGV  5 member   6 `wait`, `last` (a try that ends its owner if it is refused) or `steal` (of an
--         exclusive member)   7 life of a waiter in ms   8 max holders   9 max waiters
--       10 send number   11 lease in ms   12 how long tokens and tickets are kept in ms
--       13 member of the previous owner, or empty   14 how long that owner is remembered in ms
-- Reply 1 granted: token, lease        2 already yours and extended: token, remaining
--       0 busy: `<place, 0 is the head>,<poll after ms>,<1: restored to the queue>`, ms until the
--         last hold ends (0: none)
--      -1 late   -2 gone: this owner has ended   -4 a steal needs a not-after (W11)
--      -3 lost: `1` if a steal was granted after this grant, else `0`
--      -6 the last token is out of range
--       error LIMIT: `max waiters` are queued
--
-- May be sent twice: the latch lets one owner be granted once (C1). While the owner waits, it holds
-- `w<send number>,<ticket>`: a request whose number is not above it only reads (W2). A try that
-- does not wait and is refused writes the tombstone (C4).
local m,how,life_ms,max=ARGV[5],ARGV[6],tonumber(ARGV[7]),tonumber(ARGV[8])
local send,lease,kept,prev=tonumber(ARGV[10]),tonumber(ARGV[11]),tonumber(ARGV[12]),ARGV[13]
local latch=call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then extend_ttl(KEYS[1],record_ttl()) return out(-2,'0',0) end
local sent,ticket=(latch or ''):match('^w(%d+),(%d*)$')
sent,ticket=tonumber(sent),tonumber(ticket)
local granted,ends=latch and not sent or false,score(HOLDERS,m)
if granted~=(ends~=nil) or granted and ends<=now then return out(-3,is_stolen(latch),0) end
if is_late() then return out(-1,'0',0) end
if granted then
  call('PEXPIRE',KEYS[1],math.max(record_ttl(lease),call('PTTL',KEYS[1])))
  if ends<now+lease then ends=now+lease set_score(HOLDERS,ends,m,lease+1000) end
  register(ends,life_ms)
  return out(2,latch,ends-now)
end
local function busy(after,back)
  local place=call('ZRANK',QUEUE,m) or call('ZCARD',QUEUE)
  return out(0,place..','..text(after)..','..back,math.max(0,(last_end() or 0)-now))
end
local third=math.max(1,math.floor(life_ms/3))
if sent and send<=sent then return busy(third,0) end
if how=='steal' and not bound then return out(-4,'0',0) end
-- C5: a known waiter and its successor begin with a command that works when memory is full. A new
-- waiter does not.
if sent or prev~='' then call('PEXPIRE',KEYS[1],record_ttl()) else call('SET',KEYS[1],'w'..text(send)..',','PX',record_ttl()) end
local queued=call('ZSCORE',QUEUE,m)
-- W7: removes dead waiters, which keep their tickets in their latches, and dead holders.
local vacated=false
for _=1,4 do
  local dead=call('ZRANGEBYSCORE',BEATS,'-inf',now,'LIMIT',0,SLICE)
  for _,d in ipairs(dead) do dequeue(d) vacated=true end
  if #dead<SLICE then break end
end
local over=call('ZRANGEBYSCORE',HOLDERS,'-inf',now,'LIMIT',0,SLICE)
if #over>0 then call('ZREM',HOLDERS,unpack(over)) vacated=true end
-- W15: ticket, place and, if a copy was granted meanwhile, the hold of the previous owner pass to
-- this one.
local handed=false
if prev~='' then
  local theirs=call('GET',KEYS[9]) or ''
  if theirs:sub(1,1)~='x' then
    ticket=ticket or tonumber(theirs:match('^w%d+,(%d+)$') or call('ZSCORE',QUEUE,prev) or nil)
    local e=score(HOLDERS,prev)
    handed=e and e>now
    call('ZREM',HOLDERS,prev)
    if dequeue(prev) then vacated=true end
    call('SET',KEYS[9],handed and 'x1' or 'x0','PX',math.max(record_ttl(),tonumber(ARGV[14])))
  end
end
local holder=live_holder()
-- The waiters in front of this one, and the exclusive ones among them.
local ahead,writers
if ticket then
  local before='('..text(ticket)
  ahead,writers=call('ZCOUNT',QUEUE,'-inf',before),call('ZCOUNT',WRITERS,'-inf',before)
else ahead,writers=call('ZCARD',QUEUE),call('ZCARD',WRITERS) end
local function can_enter()
  if handed or how=='steal' then return true end
  -- W5.
  if is_exclusive(m) then return ahead==0 and not holder end
  -- W6, and W9: the shared waiters in front have places.
  return writers==0 and ahead<places(max)
end
-- Returns the token of a grant, or nothing if it would leave 2^53. W12: shared holders without an
-- exclusive grant in between have one token.
local function next_token()
  local last=call('HMGET',LAST,'t','k')
  if not is_exclusive(m) and last[2]=='s' then return last[1] end
  local n=tonumber(last[1] or '0')
  -- The order matters: a NaN compares as neither smaller nor larger.
  if not (n and n<9007199254740991) then return end
  return text(math.max(t[1]*1000000+t[2],n+1))
end
if can_enter() then
  local token=next_token()
  if not token then
    leave(m,max)
    call('DEL',KEYS[1])
    return out(-6,'0',0)
  end
  if how=='steal' and holder then end_holds() end
  local was=dequeue(m)
  extend_ttl(LAST,kept)
  call('HSET',LAST,'t',token,'k',m:sub(1,1))
  if how=='steal' then call('HSET',LAST,'st',token) end
  extend_ttl(LAST,kept)
  register(now+lease,life_ms)
  set_score(HOLDERS,now+lease,m,lease+1000)
  call('SET',KEYS[1],token,'PX',record_ttl(lease))
  if not is_exclusive(m) then if vacated then wake(max,m) elseif was then wake_next(max,m) end end
  return out(1,token,lease)
end
if how~='wait' then
  leave(m,max)
  call('SET',KEYS[1],'x0','PX',record_ttl())
  if vacated then wake(max) end
  unregister()
  return busy(0,0)
end
if not ticket then
  if count_live(BEATS)>=tonumber(ARGV[9]) then
    call('DEL',KEYS[1])
    if vacated then wake(max) end
    return redis.error_reply('LIMIT too many wait for the lock')
  end
  ticket=math.max(t[1]*1000000+t[2],tonumber(call('HGET',LAST,'q') or '0')+1)
  extend_ttl(LAST,kept) call('HSET',LAST,'q',text(ticket)) extend_ttl(LAST,kept)
end
set_score(QUEUE,ticket,m,life_ms+1000)
if is_exclusive(m) then set_score(WRITERS,ticket,m,life_ms+1000) end
set_score(BEATS,now+life_ms,m,life_ms+1000)
call('SET',KEYS[1],'w'..text(send)..','..text(ticket),'PX',record_ttl())
register(now+life_ms,life_ms)
if vacated then wake(max,m) end
-- The next poll is due when the hold that blocks this waiter, or the waiter directly in front of
-- it, ends by itself; and three times in a life.
local after,rank=third,call('ZRANK',QUEUE,m)
local blocker
if is_exclusive(m) then blocker=rank>0 and call('ZRANGE',QUEUE,0,0)[1] else blocker=writers>0 and call('ZRANGE',WRITERS,0,0)[1] end
if blocker then
  local e=score(BEATS,blocker)
  -- W16: a heartbeat that was evicted counts as a fresh one, once.
  if not e then e=now+life_ms set_score(BEATS,e,blocker,life_ms+1000) end
  if call('ZRANK',QUEUE,blocker)==rank-1 then after=math.min(after,math.max(1,e-now+1)) end
elseif holder and (is_exclusive(m) or is_exclusive(holder)) then
  after=math.min(after,math.max(1,last_end()-now+1))
end
-- Dead waiters are left over.
if call('ZCOUNT',BEATS,'-inf',now)>0 then after=1 end
return busy(after,sent and not queued and 1 or 0)
