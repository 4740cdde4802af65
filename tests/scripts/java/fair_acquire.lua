-- Redisson's acquisition of a fair lock, or its place in the queue, re-implemented.
--
-- KEYS  1 the lock's name, 2 queue, 3 timeouts
-- ARGV  1 lease in ms   2 holder   3 allowance in ms   4 the client's clock in ms
-- Reply nil: acquired; else for how many ms to park (negative: no end)
local holder, allowance, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if enters(sweep(KEYS[2], KEYS[3], now), ARGV[1], holder, allowance) then return false end
if redis.call('ZSCORE', KEYS[3], holder) then
  return math.max(0, redis.call('PTTL', KEYS[1]))
end
local last = redis.call('LINDEX', KEYS[2], -1)
local score = last and last ~= holder and tonumber(redis.call('ZSCORE', KEYS[3], last))
local park = score and score - now or redis.call('PTTL', KEYS[1])
if redis.call('ZADD', KEYS[3], park + allowance + now, holder) == 1 then
  redis.call('RPUSH', KEYS[2], holder)
end
return park
