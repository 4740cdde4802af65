-- Redisson's renewal of one client's read holds of one lock, re-implemented.
--
-- KEYS  1 the lock's name, 2 prefix of all readers' timeout keys
-- ARGV  1 lease in ms   2 number of holders   3 and on: the holders
-- Reply one element. 1: renewed; 0: none is held
local alive = false
for i = 3, 2 + ARGV[2] do
  local entries = redis.call('HGET', KEYS[1], ARGV[i])
  if entries then
    alive = true
    for entry = tonumber(entries), 1, -1 do
      redis.call('PEXPIRE', KEYS[2] .. ':' .. ARGV[i] .. ':rwlock_timeout:' .. entry, ARGV[1])
    end
  end
end
if not alive then return {0} end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {1}
