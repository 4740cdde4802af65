//! A failover that loses writes which the master had not replicated.

use std::time::Duration;

use super::door::Door;
use super::forgotten::Forgotten;
use super::link::Link;
use super::rounds::{Stand, rounds};
use test_support::servers::{Folder, Sentinels, Server};

struct Watched {
    door: Door,
    sentinels: Sentinels,
    link: Link,
    // The last field, since the servers whose files are in the folder must end before it is
    // removed.
    _folder: Folder,
}

impl Watched {
    async fn new() -> Self {
        let mut link = None;
        let sentinels = Sentinels::start_behind(|port| {
            let (way, own) = Link::start(port);
            link = Some(way);
            own
        });
        // Sentinels must not replace a master that is only slow on a busy machine.
        sentinels.set_patience(Duration::from_secs(30));
        let folder = Folder::new();
        let door = Door::start(&folder, sentinels.url());
        Self { door, sentinels, link: link.unwrap(), _folder: folder }
    }
}

impl Stand for Watched {
    fn door(&self) -> &Door {
        &self.door
    }

    fn redis(&mut self) -> &Server {
        let master = self.sentinels.master();
        self.sentinels.server(master)
    }
}

/// S63.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lost_master_had_told_no_replica_is_lost_tokens_rise_and_the_older_are_told() {
    rounds(Watched::new, async |stand, load| {
        let from = load.now();
        stand.link.stall();
        // The failover loses all writes from here on.
        let forgotten = Forgotten::hold(&stand.door).await;
        let grants = load.draw(3);
        load.goes_on(grants).await;
        load.judge_proofs(stand.redis());
        let former = stand.sentinels.master();
        stand.sentinels.server(former).kill();
        stand.link.cut();
        // An explicit command: Sentinels with a timeout short enough to detect the failure
        // themselves would also replace a master that is only slow.
        stand.sentinels.fail_over();
        load.has_lost(from);
        load.goes_on(1).await;
        forgotten.are_told(&stand.door).await;
    })
    .await;
}
