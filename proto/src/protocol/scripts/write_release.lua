-- with store_token, mint, sweep, alive
-- Ends a write hold, or an acquisition that has none (abandon), so that no copy of it can be
-- granted any more. With reads inside, it becomes a read hold of theirs (downgrade), and waiting
-- readers receive a message.
--
-- KEYS  1 latch of the owner, 2 the lock's name, 3 channel, 4 token key, 5 epoch, 6 want,
--       7 latch of the same owner's read inside, 8 its timeout key, if there is one
-- ARGV  5 write field   6 how the timeout keys of all readers begin
--       7 how long token and epoch are kept in ms
-- Reply 1 released: it was held; the token that readers have from now on, 0 without readers
--       0 was not held, or not any more
--
-- May be sent twice: verdict and token are recorded in the latch and repeated. The first write is a
-- deletion, so it works when memory is full (C5). Not rejected when late: the bound only sizes the
-- tombstone (C8).
local n,field=KEYS[2],ARGV[5]
local latch=redis.call('GET',KEYS[1])
if latch and latch:sub(1,1)=='x' then
  longer(KEYS[1],life())
  local v,e=latch:match('^x(%d)(.*)$')
  return out(tonumber(v),e~='' and e or '0',0)
end
local m=redis.call('HEXISTS',n,field)==1 and alive(n,ARGV[6])
local verdict,epoch=redis.call('HDEL',n,field),''
local wanted=redis.call('GET',KEYS[6])==field
if wanted then redis.call('DEL',KEYS[6]) end
if m==0 then redis.call('DEL',n) elseif m then
  redis.call('HSET',n,'mode','read')
  if m>0 then redis.call('PEXPIRE',n,m) end
  -- The reads inside had the write's token: from now on a stale copy of the write must have an
  -- older token than they have.
  epoch=mint(KEYS[4],ARGV[7]) or ''
  if epoch~='' then
    redis.call('SET',KEYS[5],epoch,'PX',ARGV[7])
    local inner=KEYS[7] and redis.call('GET',KEYS[7])
    if tonumber(inner) then redis.call('SET',KEYS[7],epoch,'PX',math.max(life(),redis.call('PTTL',KEYS[7]))) end
  end
end
-- Publishes to all waiters, also at a downgrade, where Redisson does not, and when a leaving writer
-- had kept readers out.
if m or wanted then say(KEYS[3],'1') end
redis.call('SET',KEYS[1],'x'..verdict..epoch,'PX',life())
return out(verdict,epoch~='' and epoch or '0',0)
