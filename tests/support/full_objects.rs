//! Objects at their limits, or with many entries to sweep, all under one name.

use edgelatch_proto::protocol::scope::ObjectKind;

use crate::calls::{field, owner};
use crate::every_call::OWNERS;
use crate::redis::Redis;

pub const NAME: &str = "job";
pub const VALUES: u64 = 10_000;
pub const READERS: u64 = 10_000;
pub const HOLDS: u64 = 10_000;
pub const PERMITS: u64 = 100_000;
pub const WAITERS: u32 = 2_000;
/// The default limits of a fair read-write lock.
pub const SHARED_HOLDERS: u64 = 1_000;
pub const FAIR_RW_WAITERS: u64 = 10_000;

/// Owner fields of other clients, numbered.
const HOLDERS: &str = "local function holder(i) return \
     string.format('%08x-0000-8000-8000-000000000000:1',i) end ";
/// Queue, timeouts, beats and arrivals of a fair lock.
const QUEUE_KEYS: [&str; 4] =
    ["redisson_lock_queue:{job}", "redisson_lock_timeout:{job}", "el:{job}:beat", "el:{job}:seat"];
/// Values with a holder, an end and a hold count each.
const VALUES_LUA: &str = "for i=1,ARGV[1] do local f,h=string.format('%022d',i),holder(i) \
     redis.call('HSET',KEYS[1],f,h,f..':'..h..':expire_time',ARGV[2],f..':'..h..':lock_count',1) \
     end redis.call('PEXPIRE',KEYS[1],600000)";
const READERS_LUA: &str = "for i=1,ARGV[1] do redis.call('HSET',KEYS[1],holder(i),ARGV[2]) end";
/// Redisson's waiters, whose timeouts end at the given time.
const FOREIGN_WAITERS_LUA: &str = "for i=1,ARGV[1] do \
     local h=string.format('%08x-0000-4000-8000-000000000000:1',i) \
     redis.call('RPUSH',KEYS[1],h) redis.call('ZADD',KEYS[2],ARGV[2],h) end";
/// The timeout key of each living reader.
const ALIVE_LUA: &str = "for i=1,ARGV[1] do \
     redis.call('SET',KEYS[1]..':'..holder(i)..':rwlock_timeout:1',1,'PX',ARGV[2]) end";
/// Redisson's readers that have died.
pub const FOREIGN_LUA: &str = "for i=1,ARGV[1] do redis.call('HSET',KEYS[1], \
     string.format('%08x-0000-4000-8000-000000000000:1',i),ARGV[2]) end";
const HOLDS_LUA: &str = "for i=1,ARGV[1] do redis.call('ZADD',KEYS[1],ARGV[2],'1|'..holder(i)) end";
/// edgelatch's waiters, alive until the given time, in the order of their arrival. The last ones
/// have been silent for longest.
const WAITERS_LUA: &str = "for i=1,ARGV[1] do redis.call('RPUSH',KEYS[1],holder(i)) \
     redis.call('ZADD',KEYS[2],ARGV[2],holder(i)) redis.call('ZADD',KEYS[3],ARGV[2]-i,holder(i)) \
     redis.call('ZADD',KEYS[4],i,holder(i)) end";

/// Holders, queue, writers and beats of a fair read-write lock.
const FAIR_RW_KEYS: [&str; 4] =
    ["el:{job}:frw:holders", "el:{job}:frw:queue", "el:{job}:frw:writers", "el:{job}:frw:beats"];
/// Waiters of a fair read-write lock, a third of them exclusive, alive until the given time.
const FAIR_RW_WAITERS_LUA: &str = "for i=1,ARGV[1] do local x=i%3==0 \
     local m=(x and 'x' or 's')..holder(i)..'|' \
     redis.call('ZADD',KEYS[2],i,m) redis.call('ZADD',KEYS[4],ARGV[2],m) \
     if x then redis.call('ZADD',KEYS[3],i,m) end end";
/// Removes the exclusive waiters of a fair read-write lock.
const SHARED_ALONE_LUA: &str = "for _,m in ipairs(redis.call('ZRANGE',KEYS[3],0,-1)) do \
     for k=2,4 do redis.call('ZREM',KEYS[k],m) end end";
/// Holders of a fair read-write lock in shared mode, whose leases end at the given time.
const FAIR_RW_HOLDERS_LUA: &str =
    "for i=1,ARGV[1] do redis.call('ZADD',KEYS[1],ARGV[2],'s'..holder(i)..'|') end";
/// Names of one namespace, each with ten holders in shared mode.
const FAIR_RW_NAMES_LUA: &str = "for n=1,ARGV[1] do local name='{job}:'..string.format('%04d',n) \
     redis.call('ZADD','el:{job}:frw:names',0,name) \
     redis.call('ZADD','el:{job}:frw:ends',ARGV[2],name) \
     for i=1,10 do redis.call('ZADD','el:'..name..':frw:holders',ARGV[2],'s'..holder(i)..'|') end \
     end";

pub async fn fill(redis: &Redis, lua: &str, keys: &[&str], count: u64, number: u64) {
    let (source, key_count) = (HOLDERS.to_owned() + lua, keys.len().to_string());
    let (count, number) = (count.to_string(), number.to_string());
    let mut words = vec!["EVAL", &source, &key_count];
    words.extend(keys);
    words.extend([&*count, &number]);
    redis.query::<redis::Value>(&words).await;
}

/// Stores this many values that end at this time.
pub async fn fill_values(redis: &Redis, count: u64, ends_at: u64) {
    fill(redis, VALUES_LUA, &[NAME], count, ends_at).await;
}

/// Stores this many living readers, each with this hold count.
pub async fn fill_readers(redis: &Redis, count: u64, holds: u64) {
    fill_dead_readers(redis, count, holds).await;
    fill(redis, ALIVE_LUA, &["{job}"], count, 600_000).await;
}

/// Stores this many readers that died without a release: their fields, and no timeout keys.
pub async fn fill_dead_readers(redis: &Redis, count: u64, holds: u64) {
    redis.query::<u64>(&["HSET", NAME, "mode", "read"]).await;
    fill(redis, READERS_LUA, &[NAME], count, holds).await;
    redis.query::<u64>(&["PEXPIRE", NAME, "600000"]).await;
}

/// Stores this many holds in a set, which end at this time.
pub async fn fill_holds(redis: &Redis, set: &str, count: u64, ends_at: u64) {
    fill(redis, HOLDS_LUA, &[set], count, ends_at).await;
}

/// Stores this many waiters of a fair lock.
pub async fn fill_queue(redis: &Redis, count: u32) {
    fill_queue_until(redis, count, redis.now_ms().await + 600_000).await;
}

/// Stores this many waiters of a fair lock, whose heartbeats end at this time.
pub async fn fill_queue_until(redis: &Redis, count: u32, alive_until: u64) {
    fill(redis, WAITERS_LUA, &QUEUE_KEYS, u64::from(count), alive_until).await;
}

/// Stores this many waiters of a fair read-write lock, whose heartbeats end at this time.
pub async fn fill_fair_rw_queue(redis: &Redis, count: u64, alive_until: u64) {
    fill(redis, FAIR_RW_WAITERS_LUA, &FAIR_RW_KEYS, count, alive_until).await;
}

/// Stores this many holders of a fair read-write lock, whose leases end at this time.
pub async fn fill_fair_rw_holders(redis: &Redis, count: u64, ends_at: u64) {
    fill(redis, FAIR_RW_HOLDERS_LUA, &FAIR_RW_KEYS, count, ends_at).await;
}

/// Stores this many fair read-write locks with one hash tag, each with ten holders.
pub async fn fill_fair_rw_names(redis: &Redis, count: u64, ends_at: u64) {
    fill(redis, FAIR_RW_NAMES_LUA, &[], count, ends_at).await;
}

/// A semaphore with this many holds.
async fn fill_set(redis: &Redis, set: &str, count: u64, ends_at: u64) {
    redis.query::<String>(&["SET", NAME, "500000"]).await;
    fill_holds(redis, set, count, ends_at).await;
}

/// The content of a name: at the limit of its kind, or with entries to sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    Empty,
    PlainLock,
    Values,
    EndedValues,
    Readers,
    FewReaders,
    SomeDeadReaders,
    Queue,
    DeadQueue,
    DeadForeignQueue,
    Evicted,
    FairRwQueue,
    DeadFairRwQueue,
    FairRwHolders,
    Holds,
    EndedHolds,
    Permits,
    EndedPermits,
    Latch,
}

impl World {
    pub const ALL: [Self; 19] = [
        Self::Empty,
        Self::PlainLock,
        Self::Values,
        Self::EndedValues,
        Self::Readers,
        Self::FewReaders,
        Self::SomeDeadReaders,
        Self::Queue,
        Self::DeadQueue,
        Self::DeadForeignQueue,
        Self::Evicted,
        Self::FairRwQueue,
        Self::DeadFairRwQueue,
        Self::FairRwHolders,
        Self::Holds,
        Self::EndedHolds,
        Self::Permits,
        Self::EndedPermits,
        Self::Latch,
    ];

    /// The kind of the objects whose calls are made there; `None` for all.
    pub const fn kind(self) -> Option<ObjectKind> {
        match self {
            Self::Empty => None,
            Self::Holds | Self::EndedHolds => Some(ObjectKind::Semaphore),
            Self::Permits | Self::EndedPermits => Some(ObjectKind::Permits),
            Self::Latch => Some(ObjectKind::Latch),
            _ => Some(ObjectKind::Lock),
        }
    }

    pub async fn fill(self, redis: &Redis) {
        let now = redis.now_ms().await;
        let (over, later) = (now - 600_000, now + 600_000);
        match self {
            Self::Empty => {}
            Self::PlainLock => redis.query(&["HSET", NAME, "another", "1"]).await,
            Self::Values => fill_values(redis, VALUES, later).await,
            Self::EndedValues => fill_values(redis, VALUES, over).await,
            Self::Readers => fill_dead_readers(redis, READERS, 1).await,
            Self::FewReaders => fill_dead_readers(redis, 127, 2).await,
            // After one sweep of this number the rest is few enough to be examined one by one.
            Self::SomeDeadReaders => fill_dead_readers(redis, 383, 2).await,
            Self::Queue => {
                redis.query::<u64>(&["HSET", NAME, "another", "1"]).await;
                fill_queue(redis, WAITERS - 1).await;
            }
            Self::DeadQueue => fill_queue_until(redis, WAITERS, over).await,
            Self::DeadForeignQueue => {
                let keys = &QUEUE_KEYS[..2];
                fill(redis, FOREIGN_WAITERS_LUA, keys, u64::from(WAITERS - 1), over).await;
            }
            // Redisson has evicted the caller from the end of the queue.
            Self::Evicted => {
                fill_queue(redis, WAITERS - 1).await;
                let caller = field(&owner(OWNERS[0]));
                redis.query(&["ZADD", QUEUE_KEYS[3], &WAITERS.to_string(), &caller]).await
            }
            Self::FairRwQueue => {
                fill_fair_rw_holders(redis, 1, later).await;
                fill_fair_rw_queue(redis, FAIR_RW_WAITERS - 1, later).await;
            }
            // Neither holders nor waiters are alive.
            Self::DeadFairRwQueue => {
                fill_fair_rw_holders(redis, SHARED_HOLDERS, over).await;
                fill_fair_rw_queue(redis, FAIR_RW_WAITERS, over).await;
            }
            // As many holders and shared waiters as one call notifies, and more.
            Self::FairRwHolders => {
                fill_fair_rw_holders(redis, SHARED_HOLDERS, later).await;
                fill_fair_rw_queue(redis, 300, later).await;
                fill(redis, SHARED_ALONE_LUA, &FAIR_RW_KEYS, 0, 0).await;
            }
            Self::Holds => fill_set(redis, "el:{job}:held", HOLDS, later).await,
            Self::EndedHolds => fill_set(redis, "el:{job}:held", HOLDS, over).await,
            Self::Permits => fill_set(redis, "{job}:timeout", HOLDS, later).await,
            Self::EndedPermits => fill_set(redis, "{job}:timeout", HOLDS, over).await,
            Self::Latch => redis.query(&["SET", NAME, "3"]).await,
        }
    }
}
