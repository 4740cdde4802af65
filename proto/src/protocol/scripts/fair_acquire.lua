-- with store_token, mint, fair, kind
-- Acquires a fair lock, joins its queue, or sends the heartbeat of a waiter: one script for the
-- first try and every poll.
--
-- KEYS  1 latch of the owner, 2 to 8 as in parts/fair.lua, 9 token key, 10 latch of the previous
--         owner, if there is one
-- ARGV  5 owner field   6 to 9 as in parts/fair.lua   10 send number   11 lease in ms
--       12 last try: 1 or 0   13 allowance of a waiter of Redisson's in ms
--       14 how long the token key is kept in ms
--       15 field of the previous owner, or empty   16 how long that owner is remembered in ms
-- Reply 1 granted: token, lease        2 already yours and extended: token, remaining
--       0 not yet: `<place, 0 is the head>,<poll after ms>,<1: place restored>`, remaining of the
--         hold (-1: no end, 0: free)
--      -1 late   -2 gone: this owner has ended   -3 lost: was granted and is not held any more
--      -6 the last token is out of range
--       error, for a waiter without a place or arrival record: WRONGTYPE: the name is a group's
--         LIMIT: there are 2,000 waiters or records
--
-- May be sent twice: the latch lets one owner be granted once (C1). While the owner waits, the
-- latch keeps the highest send number, and a copy without a higher number only reads (F3). A
-- refused last try leaves the queue and writes its tombstone (C4).
local field,lease,last,prev=ARGV[5],tonumber(ARGV[11]),ARGV[12]=='1',ARGV[15]
local latch=call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then extend_ttl(KEYS[1],record_ttl()) return out(-2,'0',0) end
local seen=latch and tonumber(latch:match('^w(%d+)$'))
local granted,mine=latch and not seen or false,call('HEXISTS',KEYS[2],field)==1
if granted~=mine then return out(-3,granted and latch or '0',0) end
if is_late() then return out(-1,'0',0) end
if mine then
  extend_ttl(KEYS[2],lease) extend_ttl(KEYS[1],record_ttl(lease))
  return out(2,latch,call('PTTL',KEYS[2]))
end
-- `came`: the time at which the waiter joined the queue.
local place,came=call('LPOS',KEYS[3],field),score(6,field)
local function busy(after,back)
  local ms=call('PTTL',KEYS[2])
  return out(0,(place or call('LLEN',KEYS[3]))..','..after..','..back,ms==-2 and 0 or ms)
end
local after=math.floor(life_ms/3)
-- Returns up to `n` waiters of ours whose deadline has passed by `since`, those first that have
-- been silent for longest.
local function overdue(since,n) return call('ZRANGEBYSCORE',KEYS[5],'-inf',since,'LIMIT',0,n) end
if seen and tonumber(ARGV[10])<=seen then return busy(after,0) end
local function grant()
  local token=mint(KEYS[9],ARGV[14])
  if not token then return out(-6,'0',0) end
  dequeue(field)
  call('DEL',KEYS[7])
  call('SET',KEYS[1],token,'PX',record_ttl(lease))
  -- PEXPIRE first: see lock_acquire.
  call('PEXPIRE',KEYS[2],lease) call('HSET',KEYS[2],field,1) call('PEXPIRE',KEYS[2],lease)
  return out(1,token,lease)
end
-- F11: the state of this wait's previous owner is handed over in one step, and no copy of its
-- requests can change anything later.
if prev~='' and (call('GET',KEYS[10]) or ''):sub(1,1)~='x' then
  local held,at=call('HDEL',KEYS[2],prev),call('LPOS',KEYS[3],prev)
  came=came or score(6,prev)
  if came then set_score(6,string.format('%.0f',came),field) end
  if at and not place then call('LSET',KEYS[3],at,field) place=at end
  dequeue(prev)
  call('SET',KEYS[10],'x'..held,'PX',math.max(record_ttl(),tonumber(ARGV[16])))
  if held==1 and is_free() then return grant() end
end
if not place and is_free() and call('EXISTS',KEYS[3])==0 then return grant() end
if not (place or came) then
  if not is_free() and is_group(KEYS[2]) then return other_kind() end
  -- N2. The arrival record of an evicted waiter stays, since the waiter may come back, but not in a
  -- full queue.
  local function is_full() return math.max(call('LLEN',KEYS[3]),call('ZCARD',KEYS[6]))>=2000 end
  if not last and is_full() then
    local dead=overdue(now,64)
    for _,g in ipairs(dead) do call('LREM',KEYS[3],1,g) drop_scores(g) end
    if is_full() then
      if dead[1] and is_free() then elect_head(nil,true) end
      return redis.error_reply('LIMIT too many wait for the lock')
    end
  end
end
-- C5: a waiter that is queued, or a last try, begins with a command that works when memory is full.
-- A new waiter does not.
if place or came or last then call('DEL',KEYS[1]) end
if not last then call('SET',KEYS[1],'w'..ARGV[10],'PX',record_ttl()) end
local back=0
if not place and came then
  -- F5: Redisson evicts only heads, so the place is at the front, behind only those of our waiters
  -- that arrived before it.
  back=1
  local i,earlier,e,page=0,{}
  for _,h in ipairs(call('ZRANGEBYSCORE',KEYS[6],'-inf',came)) do earlier[h]=true end
  repeat
    page=call('LRANGE',KEYS[3],i,i+127)
    for _,h in ipairs(page) do if not earlier[h] then e=h break end end
    i=i+128
  until e or #page<128
  if e then call('LINSERT',KEYS[3],'BEFORE',e,field) else call('RPUSH',KEYS[3],field) end
elseif not place and not last then
  local newest=tonumber(call('ZRANGE',KEYS[6],-1,-1,'WITHSCORES')[2]) or 0
  set_score(6,string.format('%.0f',math.max(t[1]*1000000+t[2],newest+1)),field)
  call('RPUSH',KEYS[3],field)
end
if not last then set_score(5,now+life_ms,field) end
local h,more=elect_head(field)
if is_free() and (not h or h==field) then return grant() end
if last then
  dequeue(field)
  place=false
  call('SET',KEYS[1],'x0','PX',record_ttl())
  return busy(0,0)
end
place=call('LPOS',KEYS[3],field)
-- F6: room for the amount by which grants and give-ups of Redisson's waiters ahead will lower its
-- score.
local foreign,before,nearest=math.max(0,place-256)
for _,e in ipairs(call('LRANGE',KEYS[3],0,255)) do
  if e==field then break end
  local z=score(4,e)
  if not is_ours(e) then
    foreign=foreign+1
    -- F9: undisturbed, a score cannot be below its predecessor's.
    if before and (not z or z<before+short) then z=before+short call('ZADD',KEYS[4],z,e) end
    nearest=z or nearest
  end
  before=z
end
local room=foreign*tonumber(ARGV[13])
if nearest then room=math.max(room,math.min(nearest-now,room+3600000)) end
call('ZADD',KEYS[4],now+life_ms+skew+room,field)
-- N4: otherwise a queue whose waiters have all died would stay for ever. No key ends before
-- the queue: without its deadline a dead waiter would get one more life (F4), and without its
-- arrival record an evicted one would lose its place (F5).
for key=3,6 do call('PEXPIRE',KEYS[key],86400000) end
for _,g in ipairs(overdue(now-keep,16)) do
  if not call('LPOS',KEYS[3],g) then drop_scores(g) end
end
local ms=call('PTTL',KEYS[2])
if place==0 then
  if ms>=0 then after=math.min(after,ms+1) end
elseif ms==-2 and not is_ours(h) then after=math.min(after,1000)
elseif place==1 and is_ours(h) then after=math.min(after,math.max(1,(score(5,h) or now)-now+1)) end
-- The next waiter is not known before another run.
if more then after=10 end
return busy(after,back)
