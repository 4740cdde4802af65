//! Checks the Redis user of SECURITY.md: its rights suffice for every object, and allow nothing
//! else.

use std::time::Duration;

use edgelatch::Gateway;
use edgelatch::client::{AcquireOptions, Client, FairSettings};
use edgelatch::timing::PeerSkew;
use redis::aio::MultiplexedConnection;

use crate::scoped_objects::kinds;
use crate::support::{Redis, TOKEN, TestClient, gateway};

/// Returns the words of the command that creates the user.
fn rules() -> Vec<String> {
    let text = include_str!("../../../SECURITY.md");
    let block = text.split("```").find(|block| block.contains("ACL SETUSER")).unwrap();
    block.split_whitespace().map(str::to_owned).collect()
}

/// Creates the user, and returns a URL with its login.
pub(crate) async fn user_of_the_documentation(
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
    let url = user_of_the_documentation(&redis, &mut connection).await;
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
