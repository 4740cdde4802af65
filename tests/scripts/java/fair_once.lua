-- Redisson's acquisition of a fair lock without waiting, re-implemented.
--
-- KEYS  1 the lock's name, 2 queue, 3 timeouts
-- ARGV  1 lease in ms   2 holder   3 the client's clock in ms   4 allowance in ms
-- Reply nil: acquired; 1: not
if enters(sweep(KEYS[2], KEYS[3], ARGV[3]), ARGV[1], ARGV[2], ARGV[4]) then return false end
return 1
