//! The calls of JavaScript: how each begins.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::error::{self, Failure};
use super::numbers::{method, wait};
use super::objects::{Client, Guard, Lock, Object, stray};
use super::options::{Numbers, first};
use super::outcomes::{
    available, done, fair_read_write_state, figure, lock_state, newest, nothing, permits_state,
    semaphore_state, text,
};
use super::records::Value;
use crate::error::RequestError;
use edgelatch_proto::engine::{
    AcquirePolicy, Context, EndpointId, Engine, HoldId, LockSpec, OpId, OwnerHandle, ScopeId,
};
use edgelatch_proto::machine::LeaseState;
use edgelatch_proto::name::{PermitId, RequestId};
use edgelatch_proto::protocol::calls::{
    BatchSize, CountDownLatchCalls, FairReadWriteQuery, GuardedWrite, IdempotentCall, LatchCount,
    PermitCalls, PermitCount, PermitTotal, SemaphoreCalls, Stamp, Target, UserScript,
};
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::timing::LeaseTime;

/// The arguments of a call, as `pkg/options.js` passes them.
pub(super) struct Given {
    pub(super) method: u32,
    /// The hold of a lease: the object of the call, or an argument of a guard's.
    pub(super) hold: Option<HoldId>,
    pub(super) numbers: Vec<f64>,
    pub(super) texts: Vec<String>,
}

impl Given {
    fn numbers(&self) -> Numbers<'_> {
        Numbers(&self.numbers)
    }

    /// The first number as a number of permits, which may be negative; 1 by default.
    fn signed(&self) -> i32 {
        self.numbers().get(0).and_then(|number| number.try_into().ok()).unwrap_or(1)
    }
}

/// How the outcome of a call is read.
#[derive(Clone, Copy)]
pub(super) enum Read {
    /// An acquisition, or a wait for a latch: whether it is tried once, and the obstacle.
    Acquisition {
        once: bool,
        busy: &'static str,
    },
    Reply(fn(&Reply) -> Result<Value, RequestError>),
    Write,
    Script(HoldId),
    Hold,
    /// A release at the end of a callback or of a block: whether the lease had lasted until then.
    End {
        hold: HoldId,
        lasted: bool,
    },
}

/// Begins calls in the engine.
pub(super) struct Start<'a, 'b> {
    pub(super) engine: &'a mut Engine,
    pub(super) scope: ScopeId,
    pub(super) cx: &'a mut Context<'b>,
}

type Begun = Result<(OpId, Read), Failure>;

impl Start<'_, '_> {
    pub(super) fn call(&mut self, of: &Object, given: &Given) -> Begun {
        let what = given.method;
        match (of, given.hold) {
            (Object::Guard(guard), hold) => self.of_guard(guard, hold, given),
            (_, Some(hold)) => self.of_lease(hold, given),
            _ if matches!(
                what,
                method::ACQUIRE | method::TRY_ACQUIRE | method::RUN | method::WAIT | method::STEAL
            ) =>
            {
                self.acquisition(of, given)
            }
            (Object::Lock(lock), None) => self.of_lock(lock, given),
            (Object::Semaphore(client, calls), None) => self.of_semaphore(client, calls, given),
            (Object::Permits(client, calls, _), None) => self.of_permits(client, calls, given),
            (Object::Latch(client, calls), None) => self.of_latch(client, calls, given),
            _ => Err(stray().into()),
        }
    }

    fn acquisition(&mut self, of: &Object, given: &Given) -> Begun {
        let once = matches!(given.method, method::TRY_ACQUIRE | method::STEAL);
        let policy = given.numbers().acquire_policy(once)?;
        let permits = given.numbers().get(wait::PERMITS).unwrap_or(1);
        let too_few = "too few permits were available";
        let (client, target) = match of {
            Object::Latch(client, calls) => {
                let (scope, to) = (self.scope, client.to());
                let op = self.engine.await_latch(scope, to, calls.clone(), policy, false, self.cx);
                return Ok((op, Read::Acquisition { once, busy: "the latch was closed" }));
            }
            Object::Lock(lock) => {
                let (spec, policy) = (Arc::clone(&lock.spec), (policy, lock.owner()));
                return Ok(self.acquire(spec, policy, once, "another client held the lock"));
            }
            Object::Semaphore(client, calls) => {
                let count = PermitCount::new(u32::try_from(permits).unwrap_or_default())?;
                let announces = self.engine.announces(client.to());
                let calls = SemaphoreCalls::new(calls.name().clone(), announces, count);
                (client, Target::Semaphore(calls))
            }
            Object::Permits(client, calls, skew) => {
                let count = BatchSize::new(u16::try_from(permits).unwrap_or_default())?;
                let announces = self.engine.announces(client.to());
                let calls = PermitCalls::new(calls.name().clone(), announces, count, *skew);
                (client, Target::Permits(calls))
            }
            _ => return Err(stray().into()),
        };
        // Permits are never re-entrant, so they have no owner.
        let spec = Arc::new(self.engine.jittered(client.to(), target));
        Ok(self.acquire(spec, (policy, None), once, too_few))
    }

    fn acquire(
        &mut self,
        spec: Arc<LockSpec>,
        policy: (AcquirePolicy, Option<OwnerHandle>),
        once: bool,
        busy: &'static str,
    ) -> (OpId, Read) {
        let op = self.engine.acquire(self.scope, spec, policy, false, self.cx);
        (op, Read::Acquisition { once, busy })
    }

    fn once(
        &mut self,
        to: EndpointId,
        call: IdempotentCall,
        read: fn(&Reply) -> Result<Value, RequestError>,
    ) -> (OpId, Read) {
        (self.engine.execute_once(self.scope, to, call, self.cx), Read::Reply(read))
    }

    /// Takes the call by reference, so that the module has one copy of the code behind it.
    fn query(
        &mut self,
        to: EndpointId,
        call: &dyn Fn(RequestId) -> ScriptCall,
        read: fn(&Reply) -> Result<Value, RequestError>,
    ) -> (OpId, Read) {
        (self.engine.query(self.scope, to, call, self.cx), Read::Reply(read))
    }

    fn of_lock(&mut self, lock: &Lock, given: &Given) -> Begun {
        let (to, target) = lock.single()?;
        Ok(match given.method {
            method::INSPECT => {
                let is_fair_read_write = matches!(target, Target::FairReadWrite(_));
                let read = if is_fair_read_write { fair_read_write_state } else { lock_state };
                self.query(to, &|request| target.inspect(request, None), read)
            }
            method::QUERY => {
                let announces = self.engine.announces(to);
                let query = FairReadWriteQuery::new(target.name().clone(), announces);
                self.query(to, &|request| query.slice(request, first(&given.texts)), text)
            }
            _ => self.once(to, target.force_release(), done),
        })
    }

    fn of_semaphore(&mut self, client: &Client, calls: &SemaphoreCalls, given: &Given) -> Begun {
        let (numbers, to) = (given.numbers(), client.to());
        let target = Target::Semaphore(calls.clone());
        Ok(match given.method {
            method::ADD_PERMITS => self.once(to, calls.add(given.signed()), figure),
            method::RELEASE => self.once(to, calls.add(given.signed()), nothing),
            method::RELEASE_IF_EXISTS => {
                let count = PermitCount::new(given.signed().unsigned_abs())?;
                self.once(to, calls.add_if_exists(count), done)
            }
            method::DRAIN_PERMITS => self.once(to, calls.drain(), figure),
            method::TRY_SET_PERMITS => {
                let (total, life) = (PermitTotal::new(numbers.small(0))?, numbers.life(1)?);
                self.once(to, calls.try_set(total, life), done)
            }
            method::FORCE_RELEASE => self.once(to, target.force_release(), done),
            what => {
                let read = if what == method::INSPECT { semaphore_state } else { available };
                self.query(to, &|request| target.inspect(request, None), read)
            }
        })
    }

    fn of_permits(&mut self, client: &Client, calls: &PermitCalls, given: &Given) -> Begun {
        let (numbers, to) = (given.numbers(), client.to());
        let mut ids = Vec::new();
        for id in &given.texts {
            ids.push(PermitId::parse(id)?);
        }
        Ok(match given.method {
            method::ADD_PERMITS => self.once(to, calls.add(given.signed()), figure),
            method::RELEASE => self.once(to, calls.release_ids(&ids), figure),
            method::UPDATE_LEASE_TIME => {
                let lease = numbers.lease(0)?.unwrap_or(LeaseTime::DEFAULT);
                self.once(to, calls.update_lease(&ids, lease), done)
            }
            method::SET_PERMITS => {
                self.once(to, calls.set(PermitTotal::new(numbers.small(0))?), figure)
            }
            method::TRY_SET_PERMITS => {
                self.once(to, calls.try_set(PermitTotal::new(numbers.small(0))?), done)
            }
            method::FORCE_RELEASE => {
                self.once(to, Target::Permits(calls.clone()).force_release(), done)
            }
            what => {
                let read = if what == method::INSPECT { permits_state } else { available };
                self.query(to, &|request| calls.inspect_ids(request, &ids), read)
            }
        })
    }

    fn of_latch(&mut self, client: &Client, calls: &CountDownLatchCalls, given: &Given) -> Begun {
        let to = client.to();
        Ok(match given.method {
            method::TRY_SET_COUNT => {
                let count = given.numbers().get(0).unwrap_or_default().unsigned_abs();
                self.once(to, calls.try_set(LatchCount::new(count)?), done)
            }
            method::COUNT_DOWN => self.once(to, calls.count_down(), figure),
            method::DELETE => self.once(to, calls.delete(), done),
            _ => self.query(to, &|request| calls.inspect(request), figure),
        })
    }

    /// Begins a call of a guard. Before a write, its number is drawn and Redis' clock is known.
    fn of_guard(&mut self, guard: &Guard, hold: Option<HoldId>, given: &Given) -> Begun {
        let to = guard.client.to();
        if given.method == method::NEWEST {
            return Ok(self.query(to, &|request| guard.calls.newest(request), newest));
        }
        let hold = hold.ok_or_else(stray)?;
        let name = given.texts.get(1).map(String::as_str);
        self.engine.check_lasts(hold, self.cx).map_err(error::lost)?;
        let (_, _, grant) = self.engine.first_counting_part(hold).ok_or_else(stray)?;
        let (owner, number) = (grant.owner, given.numbers().get(1).unwrap_or(1).unsigned_abs());
        let token = match name {
            Some(name) => self.engine.token_of(hold, name),
            None => self.engine.token(hold),
        };
        let stamp = Stamp { token: token.ok_or_else(stray)?, owner, number };
        let write = match given.method {
            method::SET => GuardedWrite::set(first(&given.texts), given.numbers().life(0)?),
            method::DELETE => GuardedWrite::delete(),
            _ => GuardedWrite::claim(),
        };
        let bound = self.engine.write_bound(to, self.cx);
        let call = |request| guard.calls.write(request, bound, stamp, &write);
        let call: &dyn Fn(RequestId) -> ScriptCall = &call;
        Ok((self.engine.query(self.scope, to, call, self.cx), Read::Write))
    }

    fn of_lease(&mut self, hold: HoldId, given: &Given) -> Begun {
        let (engine, scope, numbers) = (&mut *self.engine, self.scope, given.numbers());
        let again = numbers.flag(0, false);
        Ok(match given.method {
            method::IS_HELD => (engine.query_hold(scope, hold, self.cx), Read::Hold),
            method::RENEW => {
                let lease = numbers.lease(0)?;
                (engine.renew(scope, hold, lease, self.cx), Read::Hold)
            }
            method::EVAL => self.script(hold, given)?,
            method::END => {
                // A lost lease stays lost, even if Redis has not ended the hold yet: the signal has
                // already stopped the work.
                let lasted = !matches!(engine.hold_state(hold, self.cx), LeaseState::Lost(_));
                let op = engine.release(scope, hold, again, self.cx);
                (op, Read::End { hold, lasted })
            }
            _ => (engine.release(scope, hold, again, self.cx), Read::Hold),
        })
    }

    fn script(&mut self, hold: HoldId, given: &Given) -> Begun {
        let numbers = given.numbers();
        let names = numbers.small(1) as usize;
        let keys = given.texts.iter().skip(1).take(names).cloned().collect();
        let words = given.texts.iter().skip(1 + names).cloned().collect();
        let mut script = UserScript::new(first(&given.texts), keys, words)?;
        if !numbers.flag(0, true) {
            script = script.repeatable();
        }
        let call = self.engine.script_call(hold, &script, self.cx);
        let (to, call) = call.map_err(|error| error::request(&error))?;
        let op = self.engine.execute_once(self.scope, to, call, self.cx);
        Ok((op, Read::Script(hold)))
    }
}
