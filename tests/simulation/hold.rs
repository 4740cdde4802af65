//! How Redis stores the hold of each kind of object.

use super::gateway::Run;
use super::redis::Node;
use test_support::script_model::holds::raw;

/// Where Redis stores a hold.
pub(crate) enum StoredHold {
    /// A field in each of these hashes.
    Field { names: Vec<String>, field: String },
    /// These values of a group.
    Values { group: String, fields: Vec<String>, owner: String },
    /// These members of a sorted set, each with its end.
    Members { set: String, members: Vec<String> },
}

impl StoredHold {
    /// The hold that an acquiring script requests.
    pub(crate) fn of(run: &Run<'_>) -> Self {
        let (keys, args) = (run.keys, run.args);
        match run.script.script().name {
            "lock_acquire" => {
                let names = keys[1..].chunks(2).map(|lock| lock[0].clone()).collect();
                Self::Field { names, field: args[4].clone() }
            }
            "group_acquire" => Self::Values {
                group: keys[1].clone(),
                fields: args[9..].into(),
                owner: args[4].clone(),
            },
            "semaphore_acquire" => Self::Members {
                set: keys[2].clone(),
                members: [format!("{}|{}", args[8], args[4])].into(),
            },
            "fair_rw_acquire" => {
                Self::Members { set: keys[1].clone(), members: [args[4].clone()].into() }
            }
            "permits_acquire" => Self::Members {
                set: keys[2].clone(),
                members: args[9..].iter().map(|id| raw(id)).collect(),
            },
            _ => Self::Field { names: [keys[1].clone()].into(), field: args[4].clone() },
        }
    }

    /// The names whose tokens rise with the hold.
    pub(crate) fn names(&self, run: &Run<'_>) -> Vec<String> {
        match self {
            Self::Field { names, .. } => names.clone(),
            Self::Values { .. } | Self::Members { .. } => [run.keys[1].clone()].into(),
        }
    }

    /// Whether Redis stores all of the hold, expired or not: a release also gives back a hold that
    /// has expired and that no other client has acquired since.
    pub(crate) fn exists(&self, node: &Node, now: u64) -> bool {
        match self {
            Self::Members { set, members } => {
                members.iter().all(|member| node.model.score(set, member).is_some())
            }
            Self::Field { .. } | Self::Values { .. } => self.is_valid(node, now),
        }
    }

    /// Whether Redis stores all of the hold once, unexpired at this time.
    pub(crate) fn is_valid(&self, node: &Node, now: u64) -> bool {
        let now = node.millis(now);
        match self {
            Self::Field { names, field } => names.iter().all(|name| {
                node.model.fields(name, now).any(|other| other == field)
                    && node.model.field(name, field) == Some("1")
            }),
            Self::Values { group, fields, owner } => {
                fields.iter().all(|field| node.model.holder(group, field, now) == Some(owner))
            }
            Self::Members { set, members } => {
                let now = now as i64;
                members
                    .iter()
                    .all(|member| node.model.score(set, member).is_some_and(|ends| ends >= now))
            }
        }
    }
}
