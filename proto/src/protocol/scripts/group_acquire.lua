-- with store_token, mint, group, extend_values, kind
-- Acquires a set of values of a group, all or none.
--
-- KEYS  1 latch of the owner, 2 the group, 3 its token key
-- ARGV  5 owner field   6 lease in ms   7 last try: 1 or 0   8 how long the token key is kept in ms
--       9 tolerated error of Redisson's clocks in ms   10 and on: the values' fields
-- Reply 1 granted: token, lease        2 already yours and extended: token, remaining
--       0 busy: number of the first value that is taken, longest remaining
--      -1 late   -2 gone: this owner has ended   -3 lost: was granted, and not all is held any more
--      -6 the last token is out of range
--       error WRONGTYPE: the name is a lock's   LIMIT: the group would hold more than 10,000 values
--
-- May be sent twice: the latch lets one owner be granted once (C1). A repeat returns 2 with the
-- same token and extends (C6). A refusal writes nothing, except the tombstone of a last try (C4).
-- LIMIT writes nothing either, but a full group is swept first: of about 300 fields, from a random
-- one on, the fields of values whose hold has ended are removed.
local H,lease,pad=ARGV[5],tonumber(ARGV[6]),tonumber(ARGV[9])
local latch=call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then extend_ttl(KEYS[1],record_ttl()) return out(-2,'0',0) end
local mine,busy,ms,mark,old=0,0,0,{},{}
for from=10,#ARGV,500 do
  local v={unpack(ARGV,from,math.min(from+499,#ARGV))}
  local holders,names,at=call('HMGET',group,unpack(v)),{},{}
  for i,h in ipairs(holders) do
    mark[v[i]]=true
    if h==H then mine=mine+1 elseif h then at[#at+1]=i names[#at]=v[i]..':'..h..':expire_time' end
  end
  for j,e in ipairs(at[1] and call('HMGET',group,unpack(names)) or at) do
    local i=at[j]
    local h=holders[i]
    local rest=remaining(e,h,pad)
    if not rest then old[#old+1]=names[j] old[#old+1]=v[i]..':'..h..':lock_count'
    elseif busy==0 then busy=from+i-10 end
    ms=math.max(ms,rest or 0)
  end
end
if latch then
  if mine<#ARGV-9 then return out(-3,latch,0) end
  if is_late() then return out(-1,'0',0) end
  return out(2,latch,extend_values(10,lease,pad))
end
if mine>0 then return out(-3,'0',0) end
if is_late() then return out(-1,'0',0) end
if busy>0 then
  if ARGV[7]=='1' then call('DEL',KEYS[1]) call('SET',KEYS[1],'x0','PX',record_ttl()) end
  return out(0,tostring(busy),cap_to_group(ms))
end
-- Fields of earlier owners beside a value are removed: a late unlock of Redisson's that found one
-- would take our field away. In a group that is too large to read, only those of the last
-- owner are removed.
local size=call('HLEN',group)
if size<=1024 then
  for _,k in ipairs(call('HKEYS',group)) do
    if is_lock_field(k) then return other_kind() end
    if mark[k:sub(1,22)] and #k>22 and k:sub(24,23+#H)~=H then old[#old+1]=k end
  end
elseif is_lock_field(some_field(group)) or call('HEXISTS',group,'mode')==1 then return other_kind() end
local max=30000-3*(#ARGV-9)
if size>max then
  local page=call('HSCAN',group,t[2],'COUNT',300)[2]
  for i=1,#page,2 do
    local k=page[i]
    local f,h=k:sub(1,22),k:sub(24,-13)
    if k:sub(-12)==':expire_time' and not remaining(page[i+1],h,pad) then
      if call('HGET',group,f)==h then call('HDEL',group,f) end
      call('HDEL',group,k,f..':'..h..':lock_count')
    end
  end
  if call('HLEN',group)>max then return redis.error_reply('LIMIT the group holds too many values') end
end
local token=mint(KEYS[3],ARGV[8])
if not token then return out(-6,'0',0) end
call('SET',KEYS[1],token,'PX',record_ttl(lease))
-- PEXPIRE comes first, perhaps on a missing key: Redis then rejects a user who may not run it
-- before a group without an end is written. It is repeated at the end, since a hash that loses all
-- its fields is deleted together with its end.
local ttl=call('PTTL',group)
local function extend() if ttl~=-1 then call('PEXPIRE',group,math.max(group_ttl(lease,pad),ttl)) end end
extend()
for i=1,#old,500 do call('HDEL',group,unpack(old,i,math.min(i+499,#old))) end
local pieces,n={},0
for i=10,#ARGV do
  local v=ARGV[i]
  local f=v..':'..H
  pieces[n+1],pieces[n+2],pieces[n+3]=v,H,f..':expire_time'
  pieces[n+4],pieces[n+5],pieces[n+6]=now+lease+pad,f..':lock_count',1
  n=n+6
  if n==600 or i==#ARGV then call('HSET',group,unpack(pieces,1,n)) n=0 end
end
extend()
return out(1,token,lease)
