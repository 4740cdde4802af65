-- How Redisson's fair lock begins nearly everything, in our words: put in front of the scripts that call `sweep`.
--
-- Takes those out of the queue whose score has passed, from its head on; no other score is changed.
local function sweep(queue, timeouts, now)
  while true do
    local head = redis.call('LINDEX', queue, 0)
    local score = head and tonumber(redis.call('ZSCORE', timeouts, head))
    if not score or score > tonumber(now) then return head end
    redis.call('ZREM', timeouts, head)
    redis.call('LPOP', queue)
  end
end
-- Takes a free lock, if it is the asker's turn: all others' scores fall by what the asker was ready to wait.
local function take(lease, holder, allowance)
  redis.call('LPOP', KEYS[2])
  redis.call('ZREM', KEYS[3], holder)
  for _, other in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    redis.call('ZINCRBY', KEYS[3], -tonumber(allowance), other)
  end
  redis.call('HSET', KEYS[1], holder, 1)
  redis.call('PEXPIRE', KEYS[1], lease)
end
-- Whether the lock was free for the asker, or is its already; then it is taken, or entered again.
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
