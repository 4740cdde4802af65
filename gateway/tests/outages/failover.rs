//! A failover that loses writes which the master had not replicated.

use std::time::Duration;

use super::gateway_process::GatewayProcess;
use super::lost_holds::LostHolds;
use super::replication_proxy::ReplicationProxy;
use super::rounds::{TestEnv, rounds};
use test_support::servers::{Folder, Sentinels, Server};

struct Watched {
    process: GatewayProcess,
    sentinels: Sentinels,
    link: ReplicationProxy,
    // The last field, since the servers whose files are in the folder must end before it is
    // removed.
    _folder: Folder,
}

impl Watched {
    async fn new() -> Self {
        let mut link = None;
        let sentinels = Sentinels::start_behind(|port| {
            let (way, own) = ReplicationProxy::start(port);
            link = Some(way);
            own
        });
        // Sentinels must not replace a master that is only slow on a busy machine.
        sentinels.set_patience(Duration::from_secs(30));
        let folder = Folder::new();
        let process = GatewayProcess::start(&folder, sentinels.url());
        Self { process, sentinels, link: link.unwrap(), _folder: folder }
    }
}

impl TestEnv for Watched {
    fn process(&self) -> &GatewayProcess {
        &self.process
    }

    fn redis(&mut self) -> &Server {
        let master = self.sentinels.master();
        self.sentinels.server(master)
    }
}

/// S63.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_master_loses_unreplicated_writes_tokens_rise_and_holders_are_notified() {
    rounds(Watched::new, async |env, load| {
        let from = load.now();
        env.link.stall();
        // The failover loses all writes from here on.
        let forgotten = LostHolds::hold(&env.process).await;
        let grants = load.draw(3);
        load.wait_for_grants(grants).await;
        load.check_entries(env.redis());
        let former = env.sentinels.master();
        env.sentinels.server(former).kill();
        env.link.cut();
        // An explicit command: Sentinels with a timeout short enough to detect the failure
        // themselves would also replace a master that is only slow.
        env.sentinels.fail_over();
        load.record_data_loss(from);
        load.wait_for_grants(1).await;
        forgotten.assert_loss_is_reported(&env.process).await;
    })
    .await;
}
