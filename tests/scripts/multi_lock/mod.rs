//! Several locks that one script acquires.

mod all_or_nothing;

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{LockCalls, Member, Target};
use edgelatch_proto::protocol::script::Publish;

use test_support::calls::Calls;

/// Locks that are acquired together; a name that starts with `f` is that of a fenced lock.
fn locks(names: &[&str]) -> Calls {
    locks_that_publish(names, Publish::Plain)
}

pub(super) fn locks_that_publish(names: &[&str], publish: Publish) -> Calls {
    let mut members = names
        .iter()
        .map(|name| Member { name: LockName::parse(name).unwrap(), fenced: name.starts_with('f') });
    let first = members.next().unwrap();
    Calls(Target::Lock(LockCalls::of_several(first, members.collect(), publish)))
}

pub(super) fn token_key(name: &str) -> String {
    format!("redisson_lock_token:{{{name}}}")
}
