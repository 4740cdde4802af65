//! The acquisition of each kind of object by a client.

use std::time::Duration;

use edgelatch::AcquireOptions;
use edgelatch::Error;
use edgelatch::client::{FairReadWriteSettings, FairSettings, ReadWriteSettings, SpinBackoff};
use edgelatch::error::AcquireError;
use edgelatch::timing::{PeerSkew, WantTime};

use super::plan::Kind;
use super::workload::{PlannedAcquire, Workload};
use test_support::history::{Claim, LatchOperation, Mode};

pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

impl Workload {
    /// Sets up a semaphore's permits before the first acquisition.
    pub(crate) async fn set_up_permits(&self) {
        let permits = self.sim.plan.permits;
        let client = &self.clients[0];
        match self.sim.plan.kind {
            Kind::Semaphore => {
                let semaphore = client.semaphore(NAMES[0]).unwrap();
                if semaphore.try_set_permits(permits, None).await.is_ok() {
                    self.sim.record_permits_set_up();
                }
            }
            Kind::Permits => {
                let semaphore =
                    client.permit_expirable_semaphore(NAMES[0], PeerSkew::DEFAULT).unwrap();
                if semaphore.try_set_permits(permits).await.is_ok() {
                    self.sim.record_permits_set_up();
                }
            }
            _ => {}
        }
    }

    /// Draws the next hold to acquire.
    pub(crate) fn draw_acquire(&self) -> PlannedAcquire {
        let client = &self.clients[0];
        let alone = [Claim { name: 0, mode: Mode::Exclusive }];
        let one = |lock| PlannedAcquire { lock, claims: alone.into(), parts: 1 };
        match self.sim.plan.kind {
            Kind::Lock | Kind::Latch => one(client.lock(NAMES[0]).unwrap()),
            Kind::Owner => one(client.owner().lock(NAMES[0]).unwrap()),
            Kind::Spin => one(client.spin_lock(NAMES[0], SpinBackoff::default()).unwrap()),
            Kind::Fenced => one(client.fenced_lock(NAMES[0]).unwrap()),
            Kind::Fair => one(client.fair_lock(NAMES[0], FairSettings::default()).unwrap()),
            Kind::ReadWrite => self.draw_read_write(),
            Kind::FairReadWrite => self.draw_fair_read_write(),
            Kind::Semaphore | Kind::Permits => self.draw_permits(),
            Kind::Group => self.draw_values(),
            Kind::Multi => self.draw_multi(),
            Kind::Red => {
                let locks = self.clients.iter().map(|client| client.lock(NAMES[0]).unwrap());
                let parts = self.clients.len() / 2 + 1;
                PlannedAcquire {
                    lock: client.red_lock(locks).unwrap(),
                    claims: alone.into(),
                    parts,
                }
            }
        }
    }

    fn draw_read_write(&self) -> PlannedAcquire {
        let mut settings = ReadWriteSettings::default();
        if self.sim.plan.rng_seed & 1 == 1 {
            settings = settings.prefers_writers(WantTime::new(Duration::from_secs(5)).unwrap());
        }
        let lock = self.clients[0].read_write_lock(NAMES[0], settings).unwrap();
        let (lock, mode) = match self.one_in(2) {
            true => (lock.write().clone(), Mode::Exclusive),
            false => (lock.read().clone(), Mode::Shared),
        };
        PlannedAcquire { lock, claims: [Claim { name: 0, mode }].into(), parts: 1 }
    }

    fn draw_fair_read_write(&self) -> PlannedAcquire {
        let settings = FairReadWriteSettings::default();
        let lock = self.clients[0].fair_read_write_lock(NAMES[0], settings).unwrap();
        let (lock, mode) = match self.one_in(2) {
            true => (lock.write().clone(), Mode::Exclusive),
            false => (lock.read().clone(), Mode::Shared),
        };
        PlannedAcquire { lock, claims: [Claim { name: 0, mode }].into(), parts: 1 }
    }

    fn draw_permits(&self) -> PlannedAcquire {
        let permits = 1 + self.draw(u64::from(self.sim.plan.permits) - 1) as u32;
        let client = &self.clients[0];
        let lock = match self.sim.plan.kind {
            Kind::Semaphore => client.semaphore(NAMES[0]).unwrap().permits(permits).unwrap(),
            _ => {
                let semaphore = client.permit_expirable_semaphore(NAMES[0], PeerSkew::DEFAULT);
                semaphore.unwrap().permits(permits as u16).unwrap()
            }
        };
        PlannedAcquire {
            lock,
            claims: [Claim { name: 0, mode: Mode::Permits(permits) }].into(),
            parts: 1,
        }
    }

    /// Draws some of the names, in random order.
    fn some_names(&self) -> Vec<u8> {
        let mut names: Vec<u8> = (0..NAMES.len() as u8).collect();
        let mut rng = self.rng.borrow_mut();
        rng.shuffle(&mut names);
        names.truncate(rng.usize(1..=NAMES.len()));
        names
    }

    fn draw_values(&self) -> PlannedAcquire {
        let names = self.some_names();
        let values = names.iter().map(|name| NAMES[usize::from(*name)]);
        let lock = self.clients[0].group_lock("g", values, PeerSkew::DEFAULT).unwrap();
        PlannedAcquire { lock, claims: all_of(&names), parts: 1 }
    }

    fn draw_multi(&self) -> PlannedAcquire {
        let names = self.some_names();
        let nodes = self.clients.len();
        let at = |name: &u8| usize::from(*name) % nodes;
        let locks = names
            .iter()
            .map(|name| self.clients[at(name)].lock(NAMES[usize::from(*name)]).unwrap());
        let lock = self.clients[0].multi_lock(locks).unwrap();
        let parts = (0..nodes).filter(|node| names.iter().any(|name| at(name) == *node)).count();
        PlannedAcquire { lock, claims: all_of(&names), parts }
    }

    /// Sets, awaits or counts down a latch.
    pub(crate) async fn use_latch(&self) {
        self.begin_operation();
        let latch = self.clients[0].count_down_latch(NAMES[0]).unwrap();
        let sim = &self.sim;
        match self.draw(3) {
            0 => {
                let count = 1 + self.draw(3);
                let number =
                    sim.record_latch_call(self.host, LatchOperation::UnconfirmedSet(count));
                let answer = latch.try_set_count(count).await.map_err(Error::into_kind);
                sim.record_latch_result(number, answer, |done| LatchOperation::Set(count, done));
            }
            1 => {
                let wait = Duration::from_millis(1 + self.draw(5_000));
                let number = sim.record_latch_call(self.host, LatchOperation::Ignored);
                let operation = match latch.wait_with(AcquireOptions::new().wait(wait)).await {
                    Ok(()) => LatchOperation::Read(0),
                    Err(Error { kind: AcquireError::Busy { .. }, .. }) => LatchOperation::Closed,
                    Err(_) => LatchOperation::Ignored,
                };
                sim.record_latch_result(number, Ok(()), |()| operation);
            }
            _ => {
                let number = sim.record_latch_call(self.host, LatchOperation::UnconfirmedCountDown);
                let answer = latch.count_down().await.map_err(Error::into_kind);
                sim.record_latch_result(number, answer, LatchOperation::CountDown);
            }
        }
    }
}

fn all_of(names: &[u8]) -> Vec<Claim> {
    names.iter().map(|name| Claim { name: *name, mode: Mode::Exclusive }).collect()
}
