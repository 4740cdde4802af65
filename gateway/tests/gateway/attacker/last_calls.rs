//! The last requests with a scoped token: it acquires an object of each kind with the largest
//! amounts that it allows.

use edgelatch_proto::protocol::scope::ObjectKind::{self, Guard, Lock, Permits, Semaphore};
use edgelatch_proto::protocol::scope::Right;
use fastrand::Rng;
use serde_json::{Value, json};

use super::call::{Call, Values, new_owner, new_request};
use super::ending::SECOND;
use super::env::Env;
use super::library::Library;
use super::scope::Scope;

/// An object that the token's client holds at its last moment.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) kind: ObjectKind,
    /// The script of each call that acquires the object, and the ends of its names. The calls of
    /// one object are one pipeline.
    pub(super) calls: &'static [(&'static str, &'static [&'static str])],
    /// Whether a red lock's node grants it: with the right to, the client raises its token.
    is_raised: bool,
}

impl Held {
    const fn new(
        kind: ObjectKind,
        calls: &'static [(&'static str, &'static [&'static str])],
    ) -> Self {
        Self { kind, calls, is_raised: false }
    }
}

/// The objects, each in its own request.
pub(super) const HELD: [Held; 12] = [
    Held::new(Lock, &[("lock_acquire", &["last-plain"])]),
    Held::new(Lock, &[("fair_acquire", &["last-fair"])]),
    Held::new(Lock, &[("fair_acquire", &["last-fair-brief"])]),
    Held::new(Lock, &[("fair_rw_acquire", &["last-fair-rw"])]),
    Held::new(Lock, &[("read_acquire", &["last-read"])]),
    Held::new(Lock, &[("write_acquire", &["last-write"])]),
    Held::new(Lock, &[("group_acquire", &["last-group"])]),
    // A multi-lock whose locks one script acquires, and one of several kinds.
    Held::new(Lock, &[("lock_acquire", &["last-multi", "last-multi-2"])]),
    Held::new(Lock, &[("lock_acquire", &["last-mixed"]), ("write_acquire", &["last-mixed-write"])]),
    Held { is_raised: true, ..Held::new(Lock, &[("lock_acquire", &["last-red"])]) },
    Held::new(Semaphore, &[("semaphore_acquire", &["last"])]),
    Held::new(Permits, &[("permits_acquire", &["last"])]),
];

/// The script that renews what this script has acquired.
fn renewal_of(script: &str) -> &'static str {
    match script {
        "fair_rw_acquire" => "fair_rw_renew",
        "read_acquire" => "read_renew",
        "group_acquire" => "group_renew",
        "semaphore_acquire" => "semaphore_renew",
        "permits_acquire" => "permits_renew",
        _ => "lock_renew",
    }
}

/// The last requests with a token, with the largest amounts that it allows.
pub(super) struct Last<'a> {
    pub(super) env: &'a Env,
    pub(super) library: &'a mut Library,
    pub(super) scope: &'a Scope,
    /// Redis' clock in milliseconds.
    pub(super) now: u64,
}

impl Last<'_> {
    fn values(&self, rng: &mut Rng) -> Values {
        Values {
            owners: [(); 3].map(|()| new_owner(rng)),
            request: new_request(rng),
            lease: self.scope.max_lease,
            not_after: Some(self.now + 690 * SECOND),
            token: (self.now + 59 * SECOND) * 1000,
            peer_skew: self.scope.peer_skew,
        }
    }

    /// Returns the first call of this script that the library makes on these names, if it fits.
    fn call(
        &mut self,
        names: &[String],
        script: &str,
        values: &Values,
        fits: impl Fn(&Call) -> bool,
    ) -> Call {
        let (one, two) = match names {
            [one, two] => (one.as_str(), two.as_str()),
            _ => (names[0].as_str(), "app:other"),
        };
        let templates = self.library.about(one, two);
        let of_script = templates
            .iter()
            .filter(|template| template.script().name == script && template.width == names.len());
        of_script.map(|template| template.fill(values)).find(fits).unwrap()
    }

    /// Sends calls in one pipeline, and returns the reply to each.
    async fn send(&self, calls: &[Call]) -> Vec<Value> {
        let commands: Vec<_> = calls.iter().map(Call::command).collect();
        let client = self.env.client(&self.scope.token());
        let (status, answer) = client.post("/pipeline", &json!(commands).to_string()).await;
        assert_eq!(status, 200, "{answer}");
        let replies: Vec<Value> = serde_json::from_str(&answer).unwrap();
        replies.into_iter().map(|reply| reply["result"].clone()).collect()
    }

    /// Acquires an object and extends the hold.
    pub(super) async fn holds(&mut self, object: Held, rng: &mut Rng) {
        let parts = object.calls.iter().map(|(script, endings)| {
            let name = |ending: &&str| self.scope.name(object.kind, ending);
            (*script, endings.iter().map(name).collect(), self.values(rng))
        });
        let mut parts: Vec<(&str, Vec<String>, Values)> = parts.collect();
        let acquiring: Vec<Call> = parts
            .iter()
            .map(|(script, names, values)| self.call(names, script, values, |_| true))
            .collect();
        let replies = self.send(&acquiring).await;
        for ((_, names, values), reply) in parts.iter_mut().zip(&replies) {
            assert_eq!(reply[0], 1, "{names:?}: {reply}");
            if object.is_raised && self.scope.has(Right::Majority) {
                let raising = self.call(names, "lock_raise", values, |_| true);
                check_extended(&self.send(&[raising]).await[0], names);
            }
            values.token = reply[1].as_str().unwrap().parse().unwrap();
        }
        let renewing: Vec<Call> = parts
            .iter()
            .map(|(script, names, values)| {
                let is_writer = *script == "write_acquire";
                self.call(names, renewal_of(script), values, |call| {
                    call.args.iter().any(|arg| arg.ends_with(":write")) == is_writer
                })
            })
            .collect();
        for ((_, names, _), reply) in parts.iter().zip(self.send(&renewing).await) {
            check_extended(&reply, names);
        }
    }

    /// Joins a queue by this script. `keep`: for how many milliseconds Redis remembers the request,
    /// instead of the library's value and a deadline.
    async fn queues(&mut self, script: &str, ending: &str, keep: Option<&str>, rng: &mut Rng) {
        let (name, mut values) = (self.scope.name(Lock, ending), self.values(rng));
        values.not_after = values.not_after.filter(|_| keep.is_none());
        let mut waiting = self.call(&[name], script, &values, |_| true);
        waiting.args[2] = keep.unwrap_or(&waiting.args[2]).to_owned();
        let reply = &self.send(&[waiting]).await[0];
        assert!(reply[0] == 0 || reply[0] == 1, "{reply}");
    }

    /// Waits for the fair locks, and for the write side behind a reader; claims a guarded key.
    pub(super) async fn waits(&mut self, rng: &mut Rng) {
        for _ in 0..3 {
            self.queues("fair_acquire", "last-fair", None, rng).await;
            self.queues("fair_acquire", "last-fair-brief", Some("0"), rng).await;
            self.queues("fair_rw_acquire", "last-fair-rw", None, rng).await;
        }
        let (name, values) = (self.scope.name(Lock, "last-read"), self.values(rng));
        let writing = self.call(&[name], "write_acquire", &values, |call| call.args[9] == "5000");
        let reply = &self.send(&[writing]).await[0];
        assert!(reply[0] == 0 || reply[0] == 1, "{reply}");
        if self.scope.has(Right::Guard) {
            let (name, values) = (self.scope.name(Guard, "last"), self.values(rng));
            let is_claim = |call: &Call| call.args[8] == "claim" && call.args[7] != "0";
            let claiming = self.call(&[name], "guard_write", &values, is_claim);
            assert_eq!(self.send(&[claiming]).await[0][0], 1);
        }
    }
}

/// Checks that a hold was extended or its token raised. On a slow machine the shortest lease has
/// ended before.
fn check_extended(reply: &Value, names: &[String]) {
    assert!(reply[0] == 1 || reply[0] == -3, "{names:?}: {reply}");
}
