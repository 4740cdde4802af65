//! Pipelines on a cluster.
//!
//! The commands are grouped by node. The groups run concurrently, each in the order of its
//! commands, so a node that is away delays only its own commands. A command without a key goes to
//! the node of the command before it, and `WAIT` on the same connection.

use std::sync::Arc;

use futures_util::future::join_all;
use redis::cluster_routing::Slot;
use redis::{Pipeline, RedisResult, Value};
use tokio::time::timeout_at;

use super::{Cluster, Way, route};
use crate::link::node::Node;
use crate::link::{Step, nobody, portions, too_late};
use crate::policy::Lane;
use crate::turns::{NotSent, Turns};

/// A command, its position in the pipeline, and the slot of its first key.
struct Place<'a> {
    at: usize,
    step: &'a Step,
    slot: Option<Slot>,
}

/// The commands for one node.
struct Group<'a> {
    node: Arc<Node>,
    places: Vec<Place<'a>>,
}

type Replies = Vec<RedisResult<Value>>;
/// `Ok(Ok(()))` if all commands were sent, `Ok(Err(_))` if the rest was not sent, `Err` if a
/// portion failed.
type Ended = RedisResult<Result<(), NotSent>>;

impl Cluster {
    /// Returns the reply of each command in the order of `steps`, errors of Redis included.
    pub(in crate::link) async fn pipeline(&self, steps: &[Step], turns: &Turns) -> Replies {
        let grouped = timeout_at(turns.deadline(), self.group(steps)).await;
        let groups = match grouped.unwrap_or_else(|_| Err(too_late())) {
            Ok(groups) => groups,
            Err(error) => return vec![Err(error); steps.len()],
        };
        let ran = join_all(groups.iter().map(|group| self.run(group, turns))).await;
        let mut replies: Vec<_> = groups
            .iter()
            .zip(ran)
            .flat_map(|(group, replies)| group.places.iter().map(|place| place.at).zip(replies))
            .collect();
        replies.sort_unstable_by_key(|(at, _)| *at);
        replies.into_iter().map(|(_, reply)| reply).collect()
    }

    async fn group<'a>(&self, steps: &'a [Step]) -> RedisResult<Vec<Group<'a>>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        let slots: Vec<_> = steps.iter().map(|step| route::slot(&step.command)).collect();
        // Commands before the first one with a key go to the node of that key.
        let first = slots.iter().copied().find_map(|slot| slot);
        let mut last: Option<Arc<Node>> = None;
        for (at, (step, slot)) in steps.iter().zip(slots).enumerate() {
            let node = match last.filter(|_| slot.is_none()) {
                Some(node) => node,
                None => self.node(slot.or(first)).await?,
            };
            last = Some(Arc::clone(&node));
            let place = Place { at, step, slot };
            match groups.iter_mut().find(|group| Arc::ptr_eq(&group.node, &node)) {
                Some(group) => group.places.push(place),
                None => groups.push(Group { node, places: vec![place] }),
            }
        }
        Ok(groups)
    }

    /// Returns one reply for each command of the group; a missing reply is an error.
    async fn run(&self, group: &Group<'_>, turns: &Turns) -> Replies {
        let mut replies = Vec::with_capacity(group.places.len());
        let waits = group.places.iter().any(|place| place.step.lane == Lane::Own);
        let deadline = turns.deadline();
        let ended = if waits {
            timeout_at(deadline, self.one_by_one(group, turns, &mut replies)).await
        } else {
            timeout_at(deadline, self.at_once(group, turns, &mut replies)).await
        };
        let rest = match ended {
            Ok(Ok(Ok(()))) => Err(nobody()),
            Ok(Ok(Err(reason))) => reason.reply(),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(too_late()),
        };
        replies.resize(group.places.len(), rest);
        replies
    }

    /// Sends each portion in one write. Redirected commands follow their redirections afterwards,
    /// one after the other. Ends with the first portion that fails or is not sent.
    async fn at_once(&self, group: &Group<'_>, turns: &Turns, replies: &mut Replies) -> Ended {
        let mut places = group.places.as_slice();
        for size in portions(places.iter().map(|place| place.step)) {
            let Some((portion, rest)) = places.split_at_checked(size) else { break };
            places = rest;
            let mut pipe = Pipeline::with_capacity(portion.len());
            for place in portion {
                pipe.add_command(place.step.command.clone());
            }
            let node = Arc::clone(&group.node);
            let sending = async move { node.pipeline(&pipe, Lane::Shared).await };
            let sent = match turns.send(Lane::Shared, sending).await {
                Ok(sent) => sent?,
                Err(reason) => return Ok(Err(reason)),
            };
            for (Place { step, slot, .. }, reply) in portion.iter().zip(sent) {
                let mut node = Arc::clone(&group.node);
                replies.push(match *slot {
                    Some(slot) => {
                        self.settle(&step.command, slot, &mut node, reply, &mut Way::Shared).await
                    }
                    None => Ok(reply),
                });
            }
        }
        Ok(Ok(()))
    }

    /// Sends the commands one by one on connections of the request's own, so that a `WAIT` behind a
    /// redirected command goes to the same node. Ends with the first command that fails or is not
    /// sent.
    async fn one_by_one(&self, group: &Group<'_>, turns: &Turns, replies: &mut Replies) -> Ended {
        let mut way = Way::Own(Vec::new());
        let mut last = Arc::clone(&group.node);
        for Place { step, slot, .. } in &group.places {
            if slot.is_some() {
                last = Arc::clone(&group.node);
            }
            if let Err(reason) = turns.check() {
                return Ok(Err(reason));
            }
            let reply = way.send(&last, &step.command).await?;
            let reply = match *slot {
                Some(slot) => self.settle(&step.command, slot, &mut last, reply, &mut way).await?,
                None => reply,
            };
            replies.push(Ok(reply));
        }
        Ok(Ok(()))
    }
}
