-- with store_token, mint, sweep, alive, listeners, taken, kind
-- Acquires the write side of a read-write lock. `lock_renew` extends it, with the write field.
--
-- KEYS  1 latch of the owner, 2 the lock's name, 3 token key, 4 want, 5 channel
-- ARGV  5 write field   6 lease in ms   7 last try: 1 or 0   8 how long the token key is kept in ms
--       9 how the timeout keys of all readers begin
--      10 how long a refused try keeps our readers out in ms, or empty
--      11 if the grant is published: 1
-- Reply 1 granted: token, lease        2 already yours and extended: token, remaining
--       0 busy: ms until a retry is worthwhile (-1: no end)
--      -1 late   -2 gone: this owner has ended   -3 lost: was granted and is not held any more
--      -6 the last token is out of range
--       error WRONGTYPE: the name is a group's
--
-- May be sent twice: the latch lets one owner be granted once (C1). A repeat returns 2 with the
-- same token and extends (C6). A refusal writes the tombstone if this was the last try (C4), else
-- only the want: a late copy meets latch or tombstone before it could write a want for a writer
-- that is gone, so it needs no send number.
local n,field,lease=KEYS[2],ARGV[5],tonumber(ARGV[6])
local latch=redis.call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then longer(KEYS[1],life()) return out(-2,'0',0) end
local mine=redis.call('HEXISTS',n,field)==1
if latch then
  if not mine then return out(-3,latch,0) end
  if late() then return out(-1,'0',0) end
  longer(n,lease) longer(KEYS[1],life(lease))
  return out(2,latch,redis.call('PTTL',n))
end
if mine then return out(-3,'0',0) end
if late() then return out(-1,'0',0) end
local ms=redis.call('PTTL',n)
local free=ms==-2
local mode=not free and redis.call('HGET',n,'mode')
if not (free or mode) and is_group(n) then return other_kind() end
if mode=='read' then
  -- Dead readers do not delay a writer, although their fields and the end of the hash still exist.
  local m=alive(n,ARGV[9])
  if m==0 then free=true elseif m>0 and (ms<0 or m<ms) then ms=m end
  -- Many readers of the slice were dead, so a retry soon is worthwhile.
  if m<0 and removed*4>=seen and (ms<0 or ms>10) then ms=10 end
end
local function wanted() return redis.call('GET',KEYS[4])==field and redis.call('DEL',KEYS[4]) end
if not free then
  if ARGV[7]=='1' then
    redis.call('DEL',KEYS[1])
    redis.call('SET',KEYS[1],'x0','PX',life())
    if wanted() then say(KEYS[5],'1') end
  elseif ARGV[10]~='' then
    redis.call('DEL',KEYS[4])
    redis.call('SET',KEYS[4],field,'PX',ARGV[10])
  end
  return out(0,'1',ms)
end
local token=mint(KEYS[3],ARGV[8])
if not token then return out(-6,'0',0) end
redis.call('SET',KEYS[1],token,'PX',life(lease))
-- PEXPIRE comes first: Redis then rejects a user who may not run it before a lock without an end is
-- written.
redis.call('PEXPIRE',n,lease)
redis.call('DEL',n)
redis.call('HSET',n,'mode','write',field,1)
redis.call('PEXPIRE',n,lease)
wanted()
if ARGV[11] then taken(KEYS[5],lease) end
return out(1,token,lease)
