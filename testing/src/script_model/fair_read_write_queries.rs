//! The scripts that inspect a fair read-write lock, and list a namespace.

use super::fair_read_write_state::is_exclusive;
use super::{Out, Run, ScriptModel, out};

impl ScriptModel {
    pub(super) fn fair_rw_inspect(&self, run: &Run<'_>) -> Out {
        let [holders, queue, writers, beats, last] = run.keys else { panic!("{:?}", run.keys) };
        let (member, now) = (&run.args[4], i64::try_from(run.now).unwrap());
        let live = self.live(holders, now);
        let mode = live.first().map_or(0, |(_, member)| 1 + u8::from(is_exclusive(member)));
        let is_held = live.iter().any(|(_, holder)| holder == member);
        let place = self.in_order(queue).iter().position(|(_, other)| other == member);
        let value = format!(
            "{},{},{},{mode},{},{},{}",
            self.field(last, "t").unwrap_or("0"),
            live.len(),
            u8::from(is_held),
            self.live(beats, now).len(),
            self.members(writers).len(),
            place.map_or(0, |place| place + 1),
        );
        let ms = live.last().map_or(-2, |(ends, _)| ends - now);
        out(i64::from(!live.is_empty()), &value, ms)
    }

    /// Only whole slices, and entries without the hash of their members: its model would be the
    /// hash function.
    pub(super) fn fair_rw_query(&mut self, run: &Run<'_>) -> Out {
        let [names, ends] = run.keys else { panic!("{:?}", run.keys) };
        let now = i64::try_from(run.now).unwrap();
        let mut lines = vec![String::new()];
        for name in self.members(names).clone().into_keys() {
            let key = |suffix: &str| format!("el:{name}:frw:{suffix}");
            let beats = key("beats");
            let holders = self.live(&key("holders"), now);
            let waiters: Vec<(i64, String)> = self
                .in_order(&key("queue"))
                .into_iter()
                .filter_map(|(_, member)| Some((self.score(&beats, &member)?, member)))
                .filter(|(ends, _)| *ends > now)
                .collect();
            for (kind, (ends, member)) in
                holders.iter().map(|one| ("h", one)).chain(waiters.iter().map(|one| ("w", one)))
            {
                let (owner, client) = member.split_once('|').unwrap();
                let mode = &owner[..1];
                lines.push(format!("{name}\t{mode}\t{kind}\t\t{client}\t{}", ends - now));
            }
            if holders.is_empty() && self.live(&beats, now).is_empty() {
                self.remove_member(names, &name);
                self.remove_member(ends, &name);
            }
        }
        out(1, &lines.join("\n"), i64::try_from(lines.len() - 1).unwrap())
    }

    /// The members of a sorted set with their scores, in its order.
    fn in_order(&self, key: &str) -> Vec<(i64, String)> {
        let mut members: Vec<_> =
            self.members(key).iter().map(|(member, score)| (*score, member.clone())).collect();
        members.sort();
        members
    }

    /// Those of them whose time is not over.
    fn live(&self, key: &str, now: i64) -> Vec<(i64, String)> {
        let mut members = self.in_order(key);
        members.retain(|(score, _)| *score > now);
        members
    }
}
