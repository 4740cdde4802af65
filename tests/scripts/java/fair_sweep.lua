-- The start of most of Redisson's fair-lock scripts, re-implemented: prepended to the scripts that
-- call `sweep`.
--
-- Removes waiters whose score has passed from the head of the queue; changes no other score.
local function sweep(queue, timeouts, now)
  while true do
    local head = redis.call('LINDEX', queue, 0)
    local score = head and tonumber(redis.call('ZSCORE', timeouts, head))
    if not score or score > tonumber(now) then return head end
    redis.call('ZREM', timeouts, head)
    redis.call('LPOP', queue)
  end
end
-- Acquires a free lock for the head of the queue: all other scores fall by the holder's allowance.
local function take(lease, holder, allowance)
  redis.call('LPOP', KEYS[2])
  redis.call('ZREM', KEYS[3], holder)
  for _, other in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    redis.call('ZINCRBY', KEYS[3], -tonumber(allowance), other)
  end
  redis.call('HSET', KEYS[1], holder, 1)
  redis.call('PEXPIRE', KEYS[1], lease)
end
-- Whether the lock was free for the holder, or is its own already; then acquires or re-enters it.
local function enters(head, lease, holder, allowance)
  if redis.call('EXISTS', KEYS[1]) == 0 and (not head or head == holder) then
    take(lease, holder, allowance)
    return true
  end
  if redis.call('HEXISTS', KEYS[1], holder) == 0 then return false end
  redis.call('HINCRBY', KEYS[1], holder, 1)
  redis.call('PEXPIRE', KEYS[1], lease)
  return true
end
