//! Both sides contend for one object, and Redis counts the concurrent holders.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use edgelatch::client::AcquireOptions;
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::both::{Both, NAME};
use super::kinds::{Exclusive, Ours};
use super::peer::FromJava;

/// The object that both sides contend for.
pub(crate) struct Contest {
    /// The object, and its acquiring and releasing methods, in the form of the Java side.
    pub(crate) java: Value,
    pub(crate) take: &'static str,
    pub(crate) give: Value,
    /// The number of contenders on each side.
    pub(crate) contenders: usize,
    /// The counter of concurrent holders; at most `most` are allowed.
    pub(crate) gauge: &'static str,
    pub(crate) most: u64,
    /// The gauge of holders that this object excludes.
    pub(crate) without: Option<&'static str>,
    /// Counts the sections by a read and a write; only for exclusive objects.
    pub(crate) counter: Option<&'static str>,
}

/// The contenders' observations.
#[derive(Default, Debug)]
pub(crate) struct Observations {
    pub(crate) sections: u64,
    pub(crate) violations: u64,
    /// The holder of each section, and the counter at that time.
    pub(crate) turns: Vec<(String, u64)>,
}

impl Observations {
    fn and(mut self, other: Self) -> Self {
        self.sections += other.sections;
        self.violations += other.violations;
        self.turns.extend(other.turns);
        self
    }
}

impl FromJava for Observations {
    fn from_java(value: &Value) -> Option<Self> {
        let turn = |turn: &Value| Some((String::from_java(&turn[0])?, u64::from_java(&turn[1])?));
        Some(Self {
            sections: u64::from_java(&value["sections"])?,
            violations: u64::from_java(&value["violations"])?,
            turns: value["turns"].as_array()?.iter().map(turn).collect::<Option<_>>()?,
        })
    }
}

pub(crate) async fn both_sides_contend_without_two_concurrent_holders<K: Exclusive>() {
    contended::<K>(&Both::of::<K>().await).await;
}

/// Runs contenders on both sides and checks that nothing was violated; returns their observations.
pub(crate) async fn contended<K: Exclusive>(both: &Both) -> Observations {
    let contest = Contest {
        java: K::java(&both.java, NAME),
        take: "lock",
        give: json!({ "method": "unlock", "args": [] }),
        contenders: 3,
        gauge: "inside",
        most: 1,
        without: None,
        counter: Some("turns"),
    };
    contest.run(both, || both.ours_directly::<K>()).await
}

impl Contest {
    /// Runs contenders on both sides and checks that nothing was violated; returns their
    /// observations. `ours` creates the object of each edgelatch contender.
    pub(crate) async fn run(&self, both: &Both, ours: impl Fn() -> Ours) -> Observations {
        let over = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for _ in 0..self.contenders {
            let (ours, section) = (ours(), self.section(both).await);
            tasks.spawn(contend(ours, section, Arc::clone(&over)));
        }
        let java = both.java.contend(self.request());
        let java: Observations = java.value_within(time() * 2 + Duration::from_secs(300)).await;
        over.store(true, Ordering::Relaxed);
        let ours =
            tasks.join_all().await.into_iter().fold(Observations::default(), Observations::and);
        println!("{}: {} sections of Java, {} of ours", self.gauge, java.sections, ours.sections);
        assert!(java.sections > 0 && ours.sections > 0);
        let all = java.and(ours);
        assert_eq!(all.violations, 0);
        if self.counter.is_some() {
            let mut turns: Vec<u64> = all.turns.iter().map(|(_, turn)| *turn).collect();
            turns.sort_unstable();
            assert!(turns.into_iter().eq(1..=all.sections), "no turn was counted twice");
        }
        assert_eq!(both.env.redis.query::<u64>(&["GET", self.gauge]).await, 0);
        all
    }

    fn request(&self) -> Value {
        let mut request = json!({
            "object": self.java,
            "take": { "method": self.take, "args": [] },
            "give": self.give,
            "threads": self.contenders,
            "ms": time().as_millis() as u64,
            "gauge": self.gauge,
            "most": self.most,
            "without": self.without.into_iter().collect::<Vec<_>>(),
        });
        if let Some(counter) = self.counter {
            request["counter"] = json!(counter);
        }
        request
    }

    async fn section(&self, both: &Both) -> Section {
        let redis = both.env.redis.connect().await;
        let Self { gauge, most, without, counter, .. } = *self;
        Section { redis, gauge, most, without, counter }
    }
}

/// How long they contend: `EDGELATCH_INTEROP_SECONDS`, or 10 s.
pub(crate) fn time() -> Duration {
    let seconds = env::var("EDGELATCH_INTEROP_SECONDS");
    Duration::from_secs(seconds.map_or(10, |text| text.parse().unwrap()))
}

async fn contend(ours: Ours, mut section: Section, over: Arc<AtomicBool>) -> Observations {
    let mut seen = Observations::default();
    while !over.load(Ordering::Relaxed) {
        let options = AcquireOptions::new().wait_until_cancelled();
        let lease = ours.acquire_with(options).await.unwrap();
        let (right, turn) = section.pass().await;
        seen.sections += 1;
        seen.violations += u64::from(!right);
        seen.turns.extend(turn.map(|turn| ("ours".to_owned(), turn)));
        lease.release().await.unwrap();
    }
    seen
}

/// The section of an edgelatch contender.
struct Section {
    redis: MultiplexedConnection,
    gauge: &'static str,
    most: u64,
    without: Option<&'static str>,
    counter: Option<&'static str>,
}

impl Section {
    /// Increments and decrements the gauge, and increments the counter by a read and a write.
    /// Returns whether no excluded holder was present, and the counter.
    async fn pass(&mut self) -> (bool, Option<u64>) {
        let inside = self.query(&["INCR", self.gauge]).await;
        let mut right = inside.is_some_and(|inside| inside <= self.most);
        if let Some(without) = self.without {
            right &= self.query(&["GET", without]).await.unwrap_or(0) == 0;
        }
        let mut turn = None;
        if let Some(counter) = self.counter {
            let next = self.query(&["GET", counter]).await.unwrap_or(0) + 1;
            self.query(&["SET", counter, &next.to_string(), "GET"]).await;
            turn = Some(next);
        }
        self.query(&["DECR", self.gauge]).await;
        (right, turn)
    }

    async fn query(&mut self, words: &[&str]) -> Option<u64> {
        let mut command = redis::Cmd::new();
        command.arg(words).query_async(&mut self.redis).await.unwrap()
    }
}
