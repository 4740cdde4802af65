-- Returns the token of an existing read hold: the epoch, if it is newer than the latch and the lock
-- is in mode `read` (R6). The write around the read has ended then, and its release did not raise
-- this latch: the client did not yet know of the read's grant when it sent the release.
--
-- KEYS 1 latch of the owner, 2 the lock's name
--
-- It only reads, so that Redis rejects a user who may not read the epoch before anything is
-- written.
local function risen(latch,epoch)
  local e=redis.call('HGET',KEYS[2],'mode')=='read' and redis.call('GET',epoch)
  return (tonumber(e) or 0)>(tonumber(latch) or 0) and e or latch
end
-- Writes the token to the latch.
local function raise(latch,token,lease)
  if token==latch then return end
  local ms=math.max(life(lease),redis.call('PTTL',KEYS[1]))
  -- C5: this command comes first.
  redis.call('PEXPIRE',KEYS[1],ms)
  redis.call('SET',KEYS[1],token,'PX',ms)
end
