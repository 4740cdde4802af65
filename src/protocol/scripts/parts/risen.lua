-- The token of a read hold that is there: the readers' own once nobody writes any more, where that is newer (R6). The write inside
-- which it was taken has ended then, and nobody told this hold: its grant was not heard of when the write was released.
--
-- KEYS 1 latch of the owner, 2 the lock's name
-- It only reads, so that whoever may not read the epoch is refused before anything is written.
local function risen(latch,epoch)
  local e=redis.call('HGET',KEYS[2],'mode')=='read' and redis.call('GET',epoch)
  return (tonumber(e) or 0)>(tonumber(latch) or 0) and e or latch
end
-- Writes it to the latch.
local function raise(latch,token,lease)
  if token==latch then return end
  local ms=math.max(life(lease),redis.call('PTTL',KEYS[1]))
  -- C5: this first.
  redis.call('PEXPIRE',KEYS[1],ms)
  redis.call('SET',KEYS[1],token,'PX',ms)
end
