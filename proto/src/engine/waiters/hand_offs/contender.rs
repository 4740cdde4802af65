//! A contender: a machine, and the state that its driver keeps.

use alloc::boxed::Box;
use core::time::Duration;

use super::{CLIENTS, Client, LEASE_MS, WaiterId};
use crate::engine::OpId;
use crate::engine::table::Table;
use crate::machine::{
    Acquire, AcquireAll, AcquireAllSpec, AcquireSpec, CallId, Entropy, Input, Machine as _, Output,
    TimeoutReason,
};
use crate::name::LockName;
use crate::protocol::calls::{LockCalls, Target, WakePolicy};
use crate::protocol::reply::{Reply, ServerClock};
use crate::protocol::script::Publish;
use crate::time::Instant;
use crate::timing::{LeaseTime, RequestBudget, WaitPolicy, WaitTime};

/// A call under way, and Redis' reply.
pub(super) struct UnderWay {
    pub(super) call: CallId,
    /// Whether it acquires; otherwise it undoes.
    pub(super) is_acquire: bool,
    pub(super) is_announced: bool,
    pub(super) reply: Option<Reply>,
}

pub(super) enum AnyMachine {
    One(Box<Acquire>),
    Several(Box<AcquireAll>),
}

impl AnyMachine {
    pub(super) fn handle(&mut self, input: Input, now: Instant) {
        match self {
            Self::One(machine) => machine.handle(input, now),
            Self::Several(machine) => machine.handle(input, now),
        }
    }

    /// Polls the machine; its outcome is whether it has acquired.
    pub(super) fn poll(&mut self, now: Instant) -> Output<bool> {
        match self {
            Self::One(machine) => machine.poll(now).map(|outcome| outcome.is_ok()),
            Self::Several(machine) => machine.poll(now).map(|outcome| outcome.is_ok()),
        }
    }
}

pub(super) struct Contender {
    pub(super) client: usize,
    /// The number of permits that it requests; 1 for a lock.
    pub(super) wants: u32,
    pub(super) machine: AnyMachine,
    pub(super) under_way: Option<UnderWay>,
    pub(super) wants_subscription: bool,
    pub(super) waiter: Option<WaiterId>,
    pub(super) sent_at: Instant,
    pub(super) waits: Option<(Instant, TimeoutReason)>,
    pub(super) is_cancelled: bool,
    pub(super) is_over: bool,
}

impl Contender {
    pub(super) fn new(random: &mut fastrand::Rng, total: u32, now: Instant) -> Self {
        let target = LockCalls::new(LockName::parse("job").unwrap(), Publish::Plain);
        let wait = |ms| WaitPolicy::UpTo(WaitTime::new(Duration::from_millis(ms)).unwrap());
        let lease = LeaseTime::new(Duration::from_millis(LEASE_MS)).unwrap();
        let wait_policy =
            [wait(5_000_000), wait(5_000), WaitPolicy::UntilCancelled][random.usize(..3)];
        let few = RequestBudget::new(random.u32(3..8)).ok();
        let budget = few.filter(|_| random.u8(..) < 60);
        let is_contended = random.bool();
        let clock = Some(ServerClock::new(1_000_000, now));
        let entropy = Entropy::new([random.u8(..); 32]);
        let machine = if random.bool() {
            let spec = AcquireSpec::new(Target::Lock(target), wait_policy);
            let spec = AcquireSpec { lease, budget, is_contended, ..spec };
            AnyMachine::One(Box::new(Acquire::new(spec, entropy, clock, now)))
        } else {
            let spec = AcquireAllSpec::new([Target::Lock(target)].into(), wait_policy);
            let spec = AcquireAllSpec { lease, budget, is_contended, ..spec };
            AnyMachine::Several(Box::new(AcquireAll::new(spec, entropy, [clock].into(), now)))
        };
        Self {
            client: random.usize(..CLIENTS),
            wants: random.u32(1..=total),
            machine,
            under_way: None,
            wants_subscription: false,
            waiter: None,
            sent_at: now,
            waits: None,
            is_cancelled: false,
            is_over: false,
        }
    }

    pub(super) fn on_timeout_set(
        &mut self,
        client: &mut Client,
        why: TimeoutReason,
        wakes: fn(u32) -> WakePolicy,
    ) {
        if let Some(waiter) = self.waiter {
            client.waiters.on_timeout_set(waiter, why);
            if why == TimeoutReason::LastTry {
                client.waiters.leave(waiter);
                self.waiter = None;
            }
        } else if self.wants_subscription
            && !matches!(why, TimeoutReason::ReplyDue | TimeoutReason::LastTry)
        {
            self.waiter = Some(client.waiters.enter(
                OpId(Table::default().insert(())),
                wakes(self.wants),
                self.sent_at,
                client.confirmed_at,
            ));
        }
    }
}
