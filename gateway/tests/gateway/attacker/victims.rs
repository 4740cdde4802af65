//! Other clients, which hold objects of every kind, below the prefixes of the token and outside of
//! them.

use edgelatch_proto::protocol::scope::ObjectKind::{self, Guard, Latch, Lock, Permits, Semaphore};
use fastrand::Rng;
use serde_json::{Value, json};

use super::call::{Template, Values, new_owner, new_request};
use super::env::Env;
use super::library::Library;
use super::scope::{KINDS, Scope};
use crate::scopes::now;
use crate::support::TOKEN;

/// An owner of Redisson that the attacker knows. The gateway allows no call for it, since its UUID
/// has version 4.
pub(crate) const JAVA: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
/// A lease that is longer than any test runs, in milliseconds.
const LEASE: u64 = 24 * 60 * 60 * 1000;

/// The scripts that acquire a lock with a name, by the end of the name.
const LOCKS: [(&str, &[&str]); 8] = [
    ("plain", &["lock_acquire"]),
    ("fair", &["fair_acquire", "fair_acquire"]),
    ("fair-rw", &["fair_rw_acquire", "fair_rw_acquire"]),
    ("read", &["read_acquire", "read_acquire"]),
    ("write", &["write_acquire"]),
    ("group", &["group_acquire"]),
    ("a:timeout", &["lock_acquire"]),
    ("app:ol", &["read_acquire"]),
];

/// The other clients of one round.
#[derive(Clone, Debug)]
pub(crate) struct Victims {
    /// The beginning of their owners and permit ids, which the attacker does not know.
    pub(crate) mark: String,
    /// The names of their objects that the token does not cover.
    pub(crate) foreign: Vec<String>,
}

impl Victims {
    /// Returns no other clients.
    pub(crate) fn none(rng: &mut Rng) -> Self {
        Self { mark: new_request(rng)[..8].to_owned(), foreign: Vec::new() }
    }

    /// Makes the other clients acquire their objects.
    pub(crate) async fn settle(
        env: &Env,
        scope: &Scope,
        library: &mut Library,
        rng: &mut Rng,
    ) -> Self {
        let mut victims = Self { mark: new_request(rng)[..8].to_owned(), foreign: Vec::new() };
        let mut commands = Vec::new();
        for kind in KINDS {
            let foreign = foreign(kind, env.has_tags);
            for (number, name) in scope.names(kind).iter().chain(&foreign).enumerate() {
                let templates = library.about(name, "app:other");
                let taking = victims.take(kind, name, &templates, rng);
                if env.is_contended && taking.is_empty() {
                    commands.extend(of_java(kind, name, number));
                }
                commands.extend(taking);
            }
            victims.foreign.extend(foreign);
        }
        let body = Value::from(commands).to_string();
        let (status, answer) = env.client(TOKEN).post("/pipeline", &body).await;
        assert!(status == 200 && !answer.contains("\"error\""), "{answer}");
        victims
    }

    /// Returns the commands that acquire the object with a name; none for a name that stays free.
    fn take(
        &self,
        kind: ObjectKind,
        name: &str,
        templates: &[Template],
        rng: &mut Rng,
    ) -> Vec<Value> {
        let sort = name.trim_end_matches('}');
        let scripts: &[&str] = match kind {
            _ if sort.ends_with("free") => &[],
            Lock => {
                LOCKS.iter().find(|(ending, _)| sort.ends_with(ending)).map_or(&[], |lock| lock.1)
            }
            Semaphore => &["semaphore_acquire"],
            Permits => &["permits_acquire"],
            Guard => &["guard_write"],
            _ => &[],
        };
        let mut commands = match kind {
            // The attacker may create this one, with an expiry.
            Semaphore if sort.ends_with(":free") || sort.ends_with("sfree") => Vec::new(),
            Semaphore | Permits => vec![json!(["SET", name, "100"])],
            Latch => vec![json!(["SET", name, "3"])],
            _ => Vec::new(),
        };
        for script in scripts {
            let is_it = |template: &&Template| {
                template.script().name == *script && template.kind == Some(kind)
            };
            // The first match is a first attempt, with a bound.
            let call = templates.iter().find(is_it).unwrap().fill(&self.values(rng));
            commands.push(Value::from(call.command()));
        }
        if scripts.contains(&"read_acquire") {
            let form = if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") };
            let timeout = format!("{form}:{JAVA}:rwlock_timeout:1");
            commands.push(json!(["HSET", name, JAVA, "1"]));
            commands.push(json!(["SET", timeout, "1", "PX", LEASE]));
        }
        commands
    }

    fn values(&self, rng: &mut Rng) -> Values {
        let owners = [(); 3].map(|()| self.mark.clone() + &new_owner(rng)[8..]);
        let clock = now() * 1000;
        let (request, not_after) = (new_request(rng), Some(clock + 60_000));
        Values { owners, request, lease: LEASE, not_after, token: clock * 1000, peer_skew: 1000 }
    }
}

/// Returns the commands by which clients of Redisson hold an object: locks of each sort in turn,
/// one of them with a waiter, and semaphores without a free permit.
fn of_java(kind: ObjectKind, name: &str, number: usize) -> Vec<Value> {
    let form = if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") };
    let (waiter, ends) = (format!("{JAVA}2"), (now() * 1000 + LEASE).to_string());
    let held = |fields: &[&str]| {
        let words: Vec<&str> = ["HSET", name].iter().chain(fields).copied().collect();
        vec![json!(words), json!(["PEXPIRE", name, LEASE])]
    };
    match (kind, number % 5) {
        (Lock, 0) => held(&[JAVA, "1"]),
        (Lock, 1) => {
            let queue = json!(["RPUSH", format!("redisson_lock_queue:{form}"), waiter]);
            let timeouts = format!("redisson_lock_timeout:{form}");
            [held(&[JAVA, "1"]), vec![queue, json!(["ZADD", timeouts, ends, waiter])]].concat()
        }
        (Lock, 2) => {
            let timeout = format!("{form}:{JAVA}:rwlock_timeout:1");
            let timeout = json!(["SET", timeout, "1", "PX", LEASE]);
            [held(&["mode", "read", JAVA, "1"]), vec![timeout]].concat()
        }
        (Lock, 3) => held(&["mode", "write", &format!("{JAVA}:write"), "1"]),
        (Lock, _) => {
            let field = "7lfauXx93omNKgwMm0g5eQ";
            let [end, count] = ["expire_time", "lock_count"].map(|x| format!("{field}:{JAVA}:{x}"));
            held(&[field, JAVA, &end, &ends, &count, "1"])
        }
        (Semaphore, _) => vec![json!(["SET", name, "0"])],
        _ => Vec::new(),
    }
}

/// Returns names that no token covers. Some begin almost like covered names, or have keys that look
/// like covered names.
fn foreign(kind: ObjectKind, has_tags: bool) -> Vec<String> {
    let prefix = match kind {
        Lock => "app:ol",
        Semaphore => "app:os",
        Permits => "app:op",
        Latch => "app:oc",
        _ => "app:og",
    };
    let fair = if has_tags { ":{x}fair" } else { ":fair" };
    let locks = [":plain", fair, ":fair-rw", ":read", ":write", ":group"];
    let endings = if kind == Lock { &locks[..] } else { &locks[..1] };
    let mut names: Vec<String> = endings.iter().map(|ending| format!("{prefix}{ending}")).collect();
    // Other keys of these objects begin with `{app:op}:`, as names with that prefix do.
    names.extend(matches!(kind, Permits | Lock).then(|| prefix.to_owned()));
    names
}
