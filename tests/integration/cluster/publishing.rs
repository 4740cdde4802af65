//! Which subscribers receive the end of a hold: in a cluster Redisson subscribes to the shard
//! channel of the lock.

use std::time::Duration;

use edgelatch::Publish;
use reqwest::Response;

use super::env::{TestEnv, names};
use super::objects::{beside, count, exclude, kinds, open, share, share_in_order};
use test_support::redis::TOKEN;
use test_support::servers::Cluster;

/// A subscription through the gateway.
struct Listener {
    response: Response,
    received: String,
}

impl Listener {
    async fn to(env: &TestEnv, how: &str, channel: &str) -> Self {
        let url = format!("{}/{how}/{channel}", env.url());
        let request = reqwest::Client::new().post(url).bearer_auth(TOKEN);
        let mut listener =
            Self { response: request.send().await.unwrap(), received: String::new() };
        listener.read_until(&format!("{how},{channel},1")).await;
        listener
    }

    /// Reads until this text arrives; returns the text before it.
    async fn read_until(&mut self, text: &str) -> String {
        let reading = async {
            loop {
                if let Some((before, rest)) = self.received.split_once(text) {
                    let (before, rest) = (before.to_owned(), rest.to_owned());
                    self.received = rest;
                    return before;
                }
                let chunk = self.response.chunk().await.unwrap().unwrap();
                self.received.push_str(str::from_utf8(&chunk).unwrap());
            }
        };
        tokio::time::timeout(Duration::from_secs(300), reading).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_published_on_the_shard_or_to_all_nodes_as_requested() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    for (publish, sharded, plain) in [
        (Publish::Plain, false, true),
        (Publish::Sharded, true, false),
        (Publish::Both, true, true),
    ] {
        for name in cluster.keys(&format!("announcing:{publish:?}:")) {
            let channel = format!("redisson_lock__channel:{{{name}}}");
            let mut shard = Listener::to(&env, "ssubscribe", &channel).await;
            let mut all = Listener::to(&env, "subscribe", &channel).await;
            let (client, recorder) = env.client_publishing(publish);
            client.lock(&name).unwrap().acquire().await.unwrap().release().await.unwrap();
            // A later message shows that nothing was published before it.
            let (master, _) = cluster.places(&name);
            let server = &cluster.servers()[master];
            server.query::<u64>(&["SPUBLISH", &channel, "end"]).unwrap();
            server.query::<u64>(&["PUBLISH", &channel, "end"]).unwrap();
            let before = shard.read_until(&format!("smessage,{channel},end")).await;
            assert_eq!(before.contains(&format!("smessage,{channel},0")), sharded, "{publish:?}");
            let before = all.read_until(&format!("message,{channel},end")).await;
            assert_eq!(before.contains(&format!("message,{channel},0")), plain, "{publish:?}");
            assert_eq!(recorder.redis_errors(), Vec::<String>::new());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_object_works_however_it_announces() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    for publish in [Publish::Sharded, Publish::Both] {
        let (client, recorder) = env.client_publishing(publish);
        // The channel of a latch with a braced name is in another slot than its count.
        for name in &names(&format!("telling:{publish:?}"))[..3] {
            exclude(&client, &format!("{name}a")).await;
            share(&client, &format!("{name}b")).await;
            count(&client, &format!("{name}c")).await;
            open(&client, &format!("{name}d")).await;
            share_in_order(&client, &format!("{name}e")).await;
        }
        assert_eq!(recorder.redis_errors(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_head_of_a_fair_queue_is_notified_on_its_own_channel_s_shard() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    let (client, _) = env.client_publishing(Publish::Sharded);
    let name = beside("telling-the-head");
    let held = client.lock(&name).unwrap().acquire().await.unwrap();
    let (_, fair) = &kinds(&client, &name)[5];
    // Another waiter is in the queue and subscribed, as Redisson's would be.
    let waiter = "6e6f1d4e-0f3a-4c49-9b1e-3f4b2a5c6d7e:1";
    let server = &cluster.servers()[cluster.places(&name).0];
    let queue = format!("redisson_lock_queue:{name}");
    let timeouts = format!("redisson_lock_timeout:{name}");
    server.query::<u64>(&["RPUSH", &queue, waiter]).unwrap();
    server.query::<u64>(&["ZADD", &timeouts, "9999999999999", waiter]).unwrap();
    let channel = format!("redisson_lock__channel:{name}:{waiter}");
    let mut shard = Listener::to(&env, "ssubscribe", &channel).await;
    held.release().await.unwrap();
    // The next caller finds the lock free but is not the head of the queue, so it notifies the
    // head.
    let waiting = fair.acquire_cancellable(edgelatch::AcquireOptions::new(), async {
        shard.read_until(&format!("smessage,{channel},0")).await;
    });
    assert!(waiting.await.is_err());
}
