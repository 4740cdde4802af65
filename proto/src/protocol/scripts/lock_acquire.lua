-- with store_token, listeners, taken, kind
-- Acquires one lock, or several on one gateway, all or none.
--
-- KEYS  1 latch of the owner, then for each lock: its name, its token key
-- ARGV  5 owner field   6 lease in ms   7 last try: 1 or 0   8 how long the token keys are kept in
--         ms
--       9 if any lock's token key is kept for ever: a letter for each lock, `f` for ever, `x` for
--         ARGV 8
--       10 for a node of a majority: the token that all nodes are to store, or empty
--       11 if such a node does not vote while it is young: for how long, in ms
--       12... if the grant is published: the channel of each lock
-- Reply 1 granted: token, lease        2 already yours and extended: token, remaining
--       0 busy: number of the first lock that is held, longest remaining (-1: no end)
--      -1 late   -2 gone: this owner has ended   -3 lost: was granted and is not held any more
--      -6 the last token of a lock is out of range   -10 this node is too young to vote: for how
--        long
--       error WRONGTYPE: the first name that is in use is a group's
--
-- May be sent twice: the latch lets one owner be granted once (C1). A repeat returns 2 with the
-- same token and extends (C6). A refusal writes nothing, except the tombstone of a last try (C4).
local field,lease,kept=ARGV[5],tonumber(ARGV[6]),tonumber(ARGV[8])
local latch=redis.call('GET',KEYS[1])
-- C3: a request without a bound may arrive until this tombstone ends, counted from the newest
-- request.
if latch and latch:sub(1,1)=='x' then longer(KEYS[1],life()) return out(-2,'0',0) end
local mine,busy,wait=0,0,0
for i=2,#KEYS,2 do
  if redis.call('HEXISTS',KEYS[i],field)==1 then mine=mine+1 else
    local ms=redis.call('PTTL',KEYS[i])
    if ms~=-2 then
      if busy==0 then busy=i/2 end
      if ms==-1 or wait~=-1 and ms>wait then wait=ms end
    end
  end
end
if latch then
  if mine*2+1<#KEYS then return out(-3,latch,0) end
  if late() then return out(-1,'0',0) end
  local ms
  for i=2,#KEYS,2 do longer(KEYS[i],lease) local left=redis.call('PTTL',KEYS[i]) if not ms or left<ms then ms=left end end
  longer(KEYS[1],life(lease))
  return out(2,latch,ms)
end
if mine>0 then return out(-3,'0',0) end
if late() then return out(-1,'0',0) end
if busy>0 and is_group(KEYS[busy*2]) then return other_kind() end
local young,delay=0,tonumber(ARGV[11])
if busy==0 and delay then young=delay-1000*redis.call('INFO','server'):match('uptime_in_seconds:(%d+)') end
if busy>0 or young>0 then
  if ARGV[7]=='1' then redis.call('DEL',KEYS[1]) redis.call('SET',KEYS[1],'x0','PX',life()) end
  if young>0 then return out(-10,'0',young) end
  return out(0,tostring(busy),wait)
end
local token=0
for i=3,#KEYS,2 do
  local last=redis.call('GET',KEYS[i])
  if last then
    local n=tonumber(last)
    if not (n and n<9007199254740991) then return out(-6,'0',0) end
    token=math.max(token,n+1)
  end
end
-- A proposal is an estimate of this clock, so a second is enough. A rejected one costs one
-- `lock_raise`.
local micros,proposal=t[1]*1000000+t[2],tonumber(ARGV[10])
if proposal and proposal>=token and proposal<=micros+1000000 then token=proposal else token=math.max(token,micros) end
token=string.format('%.0f',token)
for i=3,#KEYS,2 do
  local j=(i-1)/2
  store_token(KEYS[i],token,kept,ARGV[9] and ARGV[9]:sub(j,j)=='f')
end
redis.call('SET',KEYS[1],token,'PX',life(lease))
-- PEXPIRE comes first, on a missing key: Redis then rejects a user who may not run it before a lock
-- without an end is written.
for i=2,#KEYS,2 do redis.call('PEXPIRE',KEYS[i],lease) end
for i=2,#KEYS,2 do redis.call('HSET',KEYS[i],field,1) redis.call('PEXPIRE',KEYS[i],lease) end
for i=12,#ARGV do taken(ARGV[i],lease) end
return out(1,token,lease)
