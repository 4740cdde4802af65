//! The order of arrivals at a fair lock, and the order of its grants, as Redis executed them.

use std::collections::VecDeque;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::both::{Both, NAME};
use super::contention::contended;
use super::kinds::Exclusive;

/// Marks the end of the watched commands.
const END: &str = "end of the watch";

/// Every command that Redis executes, read by `MONITOR`.
pub(crate) struct Watch(JoinHandle<Turns>);

/// The queue of the test's lock, and the holders of its grants.
#[derive(Default, Debug)]
pub(crate) struct Turns {
    queue: VecDeque<String>,
    /// The waiter that was last removed from the head of the queue, and whether by `LPOP`, which
    /// Redisson also uses to remove waiters that are late.
    called: Option<(String, bool)>,
    /// The holders of all grants, in order.
    pub(crate) granted: Vec<String>,
    /// How often a waiter joined the queue.
    pub(crate) waits: usize,
    /// Holders that were granted the lock before an earlier waiter, and waiters that lost their
    /// place.
    pub(crate) violations: Vec<String>,
}

impl Watch {
    /// Watches all commands from now on.
    pub(crate) async fn start(both: &Both) -> Self {
        let socket = both.env.redis.gateway().redis_socket().unwrap();
        let mut redis = UnixStream::connect(socket).await.unwrap();
        redis.write_all(b"MONITOR\r\n").await.unwrap();
        let mut lines = BufReader::new(redis).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("+OK"));
        Self(tokio::spawn(Turns::read(lines)))
    }

    /// Ends the watch; returns what happened until now.
    pub(crate) async fn end(self, both: &Both) -> Turns {
        both.env.redis.query::<String>(&["ECHO", END]).await;
        self.0.await.unwrap()
    }
}

impl Turns {
    async fn read(mut lines: Lines<BufReader<UnixStream>>) -> Self {
        let mut turns = Self::default();
        while let Some(line) = lines.next_line().await.unwrap() {
            // `+1700000000.123456 [0 lua] "rpush" "redisson_lock_queue:{job}" "holder"`
            let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
            match words.as_slice() {
                [_, END] => break,
                [command, key, rest @ ..] => turns.happened(command, key, rest),
                _ => {}
            }
        }
        turns
    }

    fn happened(&mut self, command: &str, key: &str, rest: &[&str]) {
        let command = command.to_ascii_lowercase();
        if key == format!("redisson_lock_queue:{{{NAME}}}") {
            self.queue_changed(&command, rest);
        } else if let ("hset" | "hincrby", NAME, [holder, "1"]) = (command.as_str(), key, rest) {
            self.is_granted(holder);
        }
    }

    fn queue_changed(&mut self, command: &str, rest: &[&str]) {
        let place = |holder: &str| self.queue.iter().position(|waiter| waiter == holder);
        match (command, rest) {
            ("rpush", [holder]) => {
                self.waits += 1;
                self.queue.push_back((*holder).to_owned());
            }
            ("lpop", []) => {
                let head = self.queue.pop_front();
                self.call(head, true);
            }
            ("lrem", [_, holder]) => {
                if let Some(place) = place(holder) {
                    let left = self.queue.remove(place);
                    self.call(left.filter(|_| place == 0), false);
                }
            }
            // An edgelatch waiter continues under a new owner, or returns to its place.
            ("lset", [place, holder]) => {
                self.queue[place.parse::<usize>().unwrap()] = (*holder).to_owned();
            }
            ("linsert", [_, next, holder]) => {
                self.queue.insert(place(next).unwrap(), (*holder).to_owned());
            }
            _ => {}
        }
    }

    /// Records a waiter that left the head. A waiter that was popped and not granted the lock was
    /// removed as late, which is a violation.
    fn call(&mut self, head: Option<String>, popped: bool) {
        if let Some(head) = head
            && let Some((late, true)) = self.called.replace((head, popped))
        {
            self.violations.push(late);
        }
    }

    fn is_granted(&mut self, holder: &str) {
        let called = self.called.take().map(|(called, _)| called);
        let first = called.as_ref().or_else(|| self.queue.front());
        if first.is_some_and(|first| first != holder) {
            self.violations.push(holder.to_owned());
        }
        self.granted.push(holder.to_owned());
    }
}

/// Both sides contend, and are served in the order in which Redis saw them arrive.
pub(crate) async fn both_sides_contend_and_are_served_in_turn<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let watch = Watch::start(&both).await;
    let seen = contended::<K>(&both).await;
    let turns = watch.end(&both).await;
    assert!(turns.violations.is_empty() && turns.waits > 0, "{turns:?}");
    assert_eq!(turns.granted.len() as u64, seen.sections);
}
