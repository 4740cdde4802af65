//! Checks the Redis user of SECURITY.md: its rights suffice for every object, and allow nothing
//! else; and what other users of the same Redis reach.

use std::time::Duration;

use edgelatch::Gateway;
use edgelatch::client::{AcquireOptions, Client, FairSettings};
use edgelatch::timing::PeerSkew;
use edgelatch_gateway::Right;
use redis::aio::MultiplexedConnection;

use crate::scoped_objects::kinds;
use crate::scopes::{KEY, scoped, with_scopes};
use crate::support::{Redis, TOKEN, TestClient, gateway};

/// Returns the words of the command that creates the user.
fn rules() -> Vec<String> {
    let text = include_str!("../../../SECURITY.md");
    let block = text.split("```").find(|block| block.contains("ACL SETUSER")).unwrap();
    block.split_whitespace().map(str::to_owned).collect()
}

/// Creates the user, and returns a URL with its login.
pub(crate) async fn create_documented_user(
    redis: &Redis,
    connection: &mut MultiplexedConnection,
) -> String {
    let rules = rules();
    redis::cmd(&rules[0]).arg(&rules[1..]).exec_async(connection).await.unwrap();
    format!("{}?user=edgelatch&pass=PASSWORD", redis.url())
}

#[tokio::test]
async fn a_user_with_few_rights_is_enough_for_every_object() {
    let redis = Redis::start().await;
    let mut connection = redis.connect().await;
    let url = create_documented_user(&redis, &mut connection).await;
    let gateway = gateway(url, |_| ()).await;
    let address = format!("http://{}", gateway.address());
    let client = Client::connect(Gateway::upstash(&address, TOKEN).unwrap());
    let waits = || AcquireOptions::new().wait(Duration::from_secs(30));
    // The user's patterns allow only names without a hash tag.
    let plain = |(kind, _): &(&str, _)| !["tagged", "multi"].contains(kind);
    for (kind, lock) in kinds(&client).into_iter().filter(plain) {
        let lease = lock.acquire().await.unwrap();
        lease.renew(None).await.unwrap();
        let (next, released) = tokio::join!(lock.acquire_with(waits()), lease.release());
        assert!(released.is_ok(), "{kind}");
        next.unwrap().release().await.unwrap();
    }
    let sides = client.read_write_lock("app:s", Default::default()).unwrap();
    let read = sides.read().acquire().await.unwrap();
    read.renew(None).await.unwrap();
    read.release().await.unwrap();
    let fair = client.fair_lock("app:fair", FairSettings::default()).unwrap();
    let held = fair.acquire().await.unwrap();
    assert!(fair.try_acquire().await.unwrap().is_none());
    assert!(fair.force_release().await.unwrap() && held.release().await.is_ok());
    let semaphore = client.semaphore("app:seats").unwrap();
    assert!(semaphore.try_set_permits(2, None).await.unwrap());
    semaphore.acquire(2).await.unwrap().release().await.unwrap();
    let permits = client.permit_expirable_semaphore("app:p", PeerSkew::DEFAULT).unwrap();
    assert!(permits.try_set_permits(2).await.unwrap());
    permits.acquire(2).await.unwrap().release().await.unwrap();
    let latch = client.count_down_latch("app:gate").unwrap();
    assert!(latch.try_set_count(1).await.unwrap());
    assert_eq!(latch.count_down().await.unwrap(), 0);
    assert!(client.lock("foreign").unwrap().acquire().await.is_err());
    let raw = TestClient::new(&address, TOKEN);
    for command in
        [r#"["SET","foreign","1"]"#, r#"["KEYS","*"]"#, r#"["SCRIPT","LOAD","return 1"]"#]
    {
        let (status, body) = raw.command(command).await;
        assert!(status == 400 && body.contains("NOPERM"), "{command}: {body}");
    }
}

/// Returns all keys and values, in the order of the keys.
const CONTENTS: &str = "
    local keys, all = redis.call('KEYS', '*'), {}
    table.sort(keys)
    for _, key in ipairs(keys) do
        local kind = redis.call('TYPE', key).ok
        local values = kind == 'string' and {redis.call('GET', key)}
            or kind == 'hash' and redis.call('HGETALL', key)
            or kind == 'list' and redis.call('LRANGE', key, 0, -1)
            or kind == 'set' and redis.call('SMEMBERS', key)
            or redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
        for _, text in ipairs({key, kind, unpack(values)}) do all[#all + 1] = text end
    end
    return all";

async fn contents(connection: &mut MultiplexedConnection) -> Vec<String> {
    redis::cmd("EVAL").arg(CONTENTS).arg(0).query_async(connection).await.unwrap()
}

/// Creates a user as in SECURITY.md whose names begin with `other:`, and connects as this user.
async fn connect_as_other_user(
    redis: &Redis,
    admin: &mut MultiplexedConnection,
) -> MultiplexedConnection {
    let rules: Vec<_> = rules().iter().map(|rule| rule.replace("app:", "other:")).collect();
    let user = ["SETUSER", "other"];
    redis::cmd("ACL").arg(&user).arg(&rules[3..]).exec_async(admin).await.unwrap();
    let mut connection = redis.connect().await;
    let login = ["other", "PASSWORD"];
    redis::cmd("AUTH").arg(&login).exec_async(&mut connection).await.unwrap();
    connection
}

#[tokio::test]
async fn a_user_of_other_names_neither_reaches_nor_learns_of_an_object() {
    let redis = Redis::start().await;
    let mut admin = redis.connect().await;
    let url = create_documented_user(&redis, &mut admin).await;
    let gateway = gateway(url, |_| ()).await;
    let address = format!("http://{}", gateway.address());
    let client = Client::connect(Gateway::upstash(&address, TOKEN).unwrap());
    let semaphore = client.semaphore("app:seats").unwrap();
    assert!(semaphore.try_set_permits(2, None).await.unwrap());
    let latch = client.count_down_latch("app:gate").unwrap();
    assert!(latch.try_set_count(1).await.unwrap());
    let fair = client.fair_lock("app:fair", FairSettings::default()).unwrap();
    let sides = client.read_write_lock("app:sides", Default::default()).unwrap();
    let held = [
        client.lock("app:job").unwrap().acquire().await.unwrap(),
        fair.acquire().await.unwrap(),
        sides.read().acquire().await.unwrap(),
        semaphore.acquire(1).await.unwrap(),
    ];
    let before = contents(&mut admin).await;
    let mut other_user = connect_as_other_user(&redis, &mut admin).await;
    let mut refused = async |words: &[&str]| {
        let reply: redis::RedisResult<redis::Value> =
            redis::cmd(words[0]).arg(&words[1..]).query_async(&mut other_user).await;
        let error = reply.unwrap_err().to_string();
        let is_refusal = |text: &&str| error.contains(text);
        assert!(
            ["NOPERM", "user executing the script can't", "permission"].iter().any(is_refusal),
            "{words:?}: {error}"
        );
    };
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut admin).await.unwrap();
    assert!(keys.len() > 8, "{keys:?}");
    for key in &keys {
        for command in ["GET", "DEL", "UNLINK", "TYPE", "PTTL", "HGETALL", "HKEYS", "LPOP"] {
            refused(&[command, key]).await;
        }
        for command in ["PEXPIRE", "SET", "HDEL", "HGET", "ZREM", "RPUSH", "INCRBY"] {
            refused(&[command, key, "1"]).await;
        }
        refused(&["EVAL", "return redis.call('DEL', KEYS[1])", "1", key]).await;
        refused(&["EVAL", "return redis.call('DEL', ARGV[1])", "0", key]).await;
    }
    for words in [
        &["KEYS", "*"][..],
        &["SCAN", "0"],
        &["RANDOMKEY"],
        &["PUBSUB", "CHANNELS"],
        &["CLIENT", "LIST"],
        &["MONITOR"],
        &["SLOWLOG", "GET"],
        &["FLUSHALL"],
        &["SCRIPT", "FLUSH"],
        &["SCRIPT", "KILL"],
        &["PUBLISH", "redisson_lock__channel:{app:job}", "0"],
        &["SUBSCRIBE", "redisson_lock__channel:{app:job}"],
        &["EVAL", "return redis.call('PUBLISH', ARGV[1], '0')", "0", "redisson_rwlock:{app:sides}"],
    ] {
        refused(words).await;
    }
    assert_eq!(contents(&mut admin).await, before);
    for lease in held {
        assert_eq!(lease.is_held().await, Ok(true));
        lease.release().await.unwrap();
    }
    redis::cmd("SET").arg(&["other:job", "1"]).exec_async(&mut other_user).await.unwrap();
}

/// A user that may read all of Redis learns names and owners, but nothing that opens the gateway.
#[tokio::test]
async fn no_token_or_key_of_the_gateway_is_in_redis() {
    let redis = Redis::start().await;
    let gateway = gateway(redis.url(), with_scopes).await;
    let address = format!("http://{}", gateway.address());
    let token = scoped(&[Right::Hold]);
    for token in [TOKEN, &token] {
        let client = Client::connect(Gateway::upstash(&address, token).unwrap());
        for (_, lock) in kinds(&client) {
            lock.acquire().await.unwrap().release().await.unwrap();
        }
    }
    let all = contents(&mut redis.connect().await).await;
    assert!(all.len() > 20, "{all:?}");
    for secret in [TOKEN, KEY, token.rsplit('.').next().unwrap()] {
        assert!(all.iter().all(|text| !text.contains(secret)));
    }
}
