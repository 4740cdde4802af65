-- with store_token, mint, risen, kind, sweep
-- Acquires the read side of a read-write lock: beside other readers, or inside the write hold of
-- the same owner.
--
-- KEYS  1 latch of the owner, 2 the lock's name, 3 timeout key of this hold, 4 token key, 5 epoch,
--       6 want, 7 latch of the write hold around this read, if there is one
-- ARGV  5 owner field   6 lease in ms   7 last try: 1 or 0   8 how long token and epoch are kept in
--         ms
--       9 field of that write hold, or empty
-- Reply 1 granted: token, lease        2 already yours and extended: token, remaining
--       0 busy: ms until a retry is worthwhile (-1: no end)
--      -1 late   -2 gone: this owner has ended   -3 lost: was granted and is not held any more
--      -6 the last token is out of range
--       error WRONGTYPE: the name is a group's   LIMIT: the lock has 10,000 readers
--
-- May be sent twice: the latch lets one owner be granted once (C1). A repeat returns 2 with the
-- same token, or with the newer token that readers have since the write around it has ended, and
-- extends (C6). A refusal writes nothing, except the tombstone of a last try (C4). LIMIT writes
-- nothing either, but a lock with more than 128 fields is swept first (R9).
local n,tk,field,lease=KEYS[2],KEYS[3],ARGV[5],tonumber(ARGV[6])
local latch=redis.call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then longer(KEYS[1],life()) return out(-2,'0',0) end
local mine=redis.call('HEXISTS',n,field)==1
if latch then
  if not mine or redis.call('EXISTS',tk)==0 then return out(-3,latch,0) end
  if late() then return out(-1,'0',0) end
  local token=risen(latch,KEYS[5])
  raise(latch,token,lease)
  longer(tk,lease)
  local left=redis.call('PTTL',tk)
  longer(n,left) longer(KEYS[1],life(lease))
  return out(2,token,left)
end
if mine then return out(-3,'0',0) end
if late() then return out(-1,'0',0) end
-- A hash without a mode is a plain lock's, which Redisson takes for a free one: busy. A group's
-- hash is an error.
local mode,ms=redis.call('HGET',n,'mode'),redis.call('PTTL',n)
local inside=mode=='write' and ARGV[9]~='' and redis.call('HEXISTS',n,ARGV[9])==1
if ms~=-2 and not mode and is_group(n) then return other_kind() end
local ok=inside or ms==-2 or mode=='read'
if ok and not inside then
  -- A waiting writer goes first, if its client requested that.
  local want=redis.call('PTTL',KEYS[6])
  if want>0 then ok=false ms=want end
end
if not ok then
  if ARGV[7]=='1' then redis.call('DEL',KEYS[1]) redis.call('SET',KEYS[1],'x0','PX',life()) end
  return out(0,'1',ms)
end
-- N2. Fields of dead readers count until they are swept. Redisson's scripts read all of them.
local size=ms~=-2 and redis.call('HLEN',n) or 0
if size>128 then sweep(n,tk:sub(1,#tk-#field-18),size>10000 and 256 or 32) end
if size-removed>10000 then return redis.error_reply('LIMIT the lock has too many readers') end
-- Readers share a token, the epoch, until a writer mints a newer one; a read inside a write has the
-- write's token.
local token=redis.call('GET',KEYS[inside and 7 or 5])
if not token or not tonumber(token) or not inside and token~=redis.call('GET',KEYS[4]) then
  token=mint(KEYS[4],ARGV[8])
  if not token then return out(-6,'0',0) end
elseif not inside and redis.call('PTTL',KEYS[4])>=0 then longer(KEYS[4],tonumber(ARGV[8])) end
if not inside then redis.call('SET',KEYS[5],token,'PX',ARGV[8]) end
redis.call('SET',KEYS[1],token,'PX',life(lease))
-- PEXPIRE comes before the hash is written: Redis then rejects a user who may not run it before a
-- lock without an end exists.
longer(n,lease)
redis.call('SET',tk,1,'PX',lease)
redis.call('HSET',n,'mode',mode or 'read',field,1)
longer(n,lease)
return out(1,token,lease)
