//! A client's plan: its nodes and options.

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{LockCalls, Target};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::{LeaseTime, WaitPolicy};

/// How many parts make a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    All,
    Majority,
}

/// The options of one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rule: Rule,
    /// The nodes that it acquires, in this order. Each node is a Redis of its own.
    pub(crate) nodes: &'static [usize],
    pub(crate) lease: LeaseTime,
    pub(crate) wait_policy: WaitPolicy,
    /// Whether it may be cancelled while it waits.
    pub(crate) cancels: bool,
    /// The largest numbers of calls to acquire and to release.
    pub(crate) calls: [u8; 2],
    /// The largest number of calls to renew its hold; with 0, the client does not renew it.
    pub(crate) renewals: u8,
}

impl Plan {
    pub(crate) const fn quorum(&self) -> usize {
        match self.rule {
            Rule::All => self.nodes.len(),
            Rule::Majority => self.nodes.len() / 2 + 1,
        }
    }

    pub(crate) fn calls_of(node: usize) -> LockCalls {
        LockCalls::new(LockName::parse(name(node)).unwrap(), Publish::Plain)
    }

    pub(crate) fn targets(&self) -> Vec<Target> {
        self.nodes.iter().map(|node| Target::Lock(Self::calls_of(*node))).collect()
    }
}

/// The name of the lock on a node.
pub(crate) const fn name(node: usize) -> &'static str {
    ["a", "b", "c"][node]
}
