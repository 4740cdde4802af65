-- with store_token, mint, current_token, kind, sweep
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
local latch=call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then extend_ttl(KEYS[1],record_ttl()) return out(-2,'0',0) end
local mine=call('HEXISTS',n,field)==1
if latch then
  if not mine or call('EXISTS',tk)==0 then return out(-3,latch,0) end
  if is_late() then return out(-1,'0',0) end
  local token=current_token(latch,KEYS[5])
  raise_latch(latch,token,lease)
  extend_ttl(tk,lease)
  local left=call('PTTL',tk)
  extend_ttl(n,left) extend_ttl(KEYS[1],record_ttl(lease))
  return out(2,token,left)
end
if mine then return out(-3,'0',0) end
if is_late() then return out(-1,'0',0) end
-- A hash without a mode is a plain lock's, which Redisson takes for a free one: busy. A group's
-- hash is an error.
local mode,ms=call('HGET',n,'mode'),call('PTTL',n)
local inside=mode=='write' and ARGV[9]~='' and call('HEXISTS',n,ARGV[9])==1
if ms~=-2 and not mode and is_group(n) then return other_kind() end
local ok=inside or ms==-2 or mode=='read'
if ok and not inside then
  -- A waiting writer goes first, if its client requested that.
  local want=call('PTTL',KEYS[6])
  if want>0 then ok=false ms=want end
end
if not ok then
  if ARGV[7]=='1' then call('DEL',KEYS[1]) call('SET',KEYS[1],'x0','PX',record_ttl()) end
  return out(0,'1',ms)
end
-- N2. Fields of dead readers count until they are swept. Redisson's scripts read all of them.
local size=ms~=-2 and call('HLEN',n) or 0
if size>128 then sweep(n,tk:sub(1,#tk-#field-18),size>10000 and 256 or 32) end
if size-removed>10000 then return redis.error_reply('LIMIT the lock has too many readers') end
-- Readers share a token, the epoch, until a writer mints a newer one; a read inside a write has the
-- write's token.
local token=call('GET',KEYS[inside and 7 or 5])
if not token or not tonumber(token) or not inside and token~=call('GET',KEYS[4]) then
  token=mint(KEYS[4],ARGV[8])
  if not token then return out(-6,'0',0) end
elseif not inside and call('PTTL',KEYS[4])>=0 then extend_ttl(KEYS[4],tonumber(ARGV[8])) end
if not inside then call('SET',KEYS[5],token,'PX',ARGV[8]) end
call('SET',KEYS[1],token,'PX',record_ttl(lease))
-- PEXPIRE comes before the hash is written: Redis then rejects a user who may not run it before a
-- lock without an end exists.
extend_ttl(n,lease)
call('SET',tk,1,'PX',lease)
call('HSET',n,'mode',mode or 'read',field,1)
extend_ttl(n,lease)
return out(1,token,lease)
