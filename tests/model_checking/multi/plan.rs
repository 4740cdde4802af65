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

/// Numbers of calls, by their purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Calls {
    /// To acquire, and to undo an acquisition.
    pub(crate) acquire: u8,
    pub(crate) release: u8,
    pub(crate) renew: u8,
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
    /// The largest numbers of calls. A client without calls to renew does not renew its hold.
    pub(crate) max_calls: Calls,
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

/// Stands for all nodes in checks of exclusion: two clients must not both hold a majority.
pub(crate) const MAJORITY: usize = 9;

/// The name of the lock on a node.
pub(crate) const fn name(node: usize) -> &'static str {
    ["a", "b", "c"][node]
}
