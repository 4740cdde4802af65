-- Writes to a key, unless a newer fencing token has been seen there.
--
-- KEYS  1 the key's fence: `<token>:<number of the write>:<tag>` of the newest write, 2 the key
-- ARGV  5 token   6 tag: the owner field of the lease
--       7 number of the write: rises with the writes of one lease to one key
--       8 how long the fence is kept at least, in ms; 0 for ever
--       9 operation: set, del, or claim, which only raises the fence
--       10 value   11 how long the value is kept in ms, or empty
-- Reply 1 done: token   2 this very write was done before: token   -1 late
--       0 stale: newest token seen, 1 if it is the same one of another lease
--      -7 superseded by a later write of the same lease: token
--      -8 too old: the fence may have been forgotten since; oldest accepted token
--      -9 from the future: newest accepted token. It would lock out all later writers, for ever if
--         the fence has no end
--       error WRONGTYPE: the key holds another type than a string, such as a lock's hash
--
-- May be sent twice: token and number identify a copy, and order the writes. The key is written
-- before the fence, so a user who may not write the key, or full memory, never leaves a fence that
-- says that the write was done.
local token,number,kept=tonumber(ARGV[5]),tonumber(ARGV[7]),tonumber(ARGV[8])
local us,fence,ttl=t[1]*1000000+t[2],redis.call('GET',KEYS[1]),redis.call('PTTL',KEYS[1])
if fence then
  local seen,last,tag=fence:match('^(%d+):(%d+):(.*)$')
  local same=token==tonumber(seen)
  if token<tonumber(seen) or same and tag~=ARGV[6] then return out(0,seen,same and 1 or 0) end
  if same and number<=tonumber(last) then return out(number<tonumber(last) and -7 or 2,seen,0) end
end
if late() then return out(-1,'0',0) end
-- Tokens are times: a token that a forgotten fence would have rejected is older than the fence was
-- kept.
local oldest,newest=us-kept*1000,us+60000000
if kept>0 and not fence and token<oldest then return out(-8,string.format('%.0f',oldest),0) end
if token>newest then return out(-9,string.format('%.0f',newest),0) end
-- N3: SET and DEL would end a lock of this name. A gateway may return a string for a status of
-- Redis.
local kind=redis.call('TYPE',KEYS[2])
kind=kind.ok or kind
if kind~='string' and kind~='none' then return redis.error_reply('WRONGTYPE the guarded key holds no string') end
if ARGV[9]=='del' then redis.call('DEL',KEYS[2]) end
if ARGV[9]=='set' then
  if ARGV[11]=='' then redis.call('SET',KEYS[2],ARGV[10]) else redis.call('SET',KEYS[2],ARGV[10],'PX',ARGV[11]) end
end
fence=ARGV[5]..':'..ARGV[7]..':'..ARGV[6]
-- No fence is forgotten sooner than another writer has requested.
if kept==0 or ttl==-1 then redis.call('SET',KEYS[1],fence) else redis.call('SET',KEYS[1],fence,'PX',math.max(kept+60000,ttl)) end
return out(1,ARGV[5],0)
