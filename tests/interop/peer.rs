//! The Java side as tests use it: services, their threads, and the objects in a thread's hands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::jvm::JVM;
use test_support::stand::until;

/// No test waits for this long unless it fails, contention beside.
const AT_MOST: Duration = Duration::from_secs(300);

/// A Redisson client with its threads: one Java service among others. It may have further clients,
/// of other Redis.
#[derive(Clone)]
pub(crate) struct Service(Arc<[Opened]>);

struct Opened(String);

/// A Java thread: to Redisson, a holder. It does one thing after the other.
#[derive(Clone)]
pub(crate) struct Thread {
    service: Service,
    name: String,
}

/// One of Redisson's objects, in the hands of a thread.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) thread: Thread,
    description: Value,
}

/// What the Java side will have said.
pub(crate) struct Answer {
    to: Value,
    said: oneshot::Receiver<Value>,
}

/// An exception that a method ended with.
#[derive(Debug)]
pub(crate) struct Thrown {
    class: String,
    pub(crate) message: String,
    /// The class at the root of it.
    pub(crate) cause: String,
}

/// What a method can return.
pub(crate) trait FromJava: Sized {
    fn from_java(value: &Value) -> Option<Self>;
}

macro_rules! from_java {
    ($($kind:ty: $value:ident => $read:expr;)*) => {
        $(impl FromJava for $kind {
            fn from_java($value: &Value) -> Option<Self> {
                $read
            }
        })*
    };
}

from_java! {
    (): value => value.as_null();
    bool: value => value.as_bool();
    i64: value => value.as_i64();
    u64: value => value.as_u64();
    String: value => value.as_str().map(str::to_owned);
    Value: value => Some(value.clone());
}

impl<T: FromJava> FromJava for Option<T> {
    fn from_java(value: &Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::from_java(value).map(Some) }
    }
}

impl<T: FromJava> FromJava for Vec<T> {
    fn from_java(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(T::from_java).collect()
    }
}

/// A time as an argument.
pub(crate) fn ms(ms: i64) -> Value {
    json!({ "ms": ms })
}

impl Service {
    /// Connects clients that are configured like this, in Redisson's words. The first has the
    /// threads.
    pub(crate) async fn open(configs: impl Iterator<Item = Value>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut clients = Vec::new();
        for config in configs {
            let name = format!("service-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
            let open = json!({ "do": "open", "service": name, "config": config });
            clients.push(Opened(name));
            Answer::to(open).value::<()>().await;
        }
        Self(clients.into())
    }

    /// The names of its clients.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|client| client.0.as_str())
    }

    fn name(&self) -> &str {
        &self.0[0].0
    }

    /// The thread of this name.
    pub(crate) fn thread(&self, name: &str) -> Thread {
        Thread { service: self.clone(), name: name.to_owned() }
    }

    /// Has several threads of its own contend; see `Contention.java` for what is asked.
    pub(crate) fn contend(&self, mut question: Value) -> Answer {
        question["do"] = json!("contend");
        question["service"] = json!(self.name());
        Answer::to(question)
    }
}

impl Drop for Opened {
    /// As a service ends that is killed: it does not release what it holds.
    fn drop(&mut self) {
        // In a test that has failed, the JVM may be what failed.
        if !thread::panicking() {
            drop(Answer::to(json!({ "do": "close", "service": self.0 })));
        }
    }
}

impl Thread {
    /// The object that is described like this.
    pub(crate) fn object(&self, description: Value) -> Object {
        Object { thread: self.clone(), description }
    }

    /// The thread as Redis knows it.
    pub(crate) async fn holder(&self) -> String {
        self.ask("holder").value().await
    }

    /// Ends when the thread is inside of one of Redisson's waits, and does not go on by itself.
    pub(crate) async fn waits(&self) {
        until(async || self.is_waiting().await).await;
    }

    /// Whether it is inside of one of Redisson's waits now.
    pub(crate) async fn is_waiting(&self) -> bool {
        self.ask("waits").value().await
    }

    fn ask(&self, what: &str) -> Answer {
        Answer::to(json!({ "do": what, "service": self.service.name(), "thread": self.name }))
    }
}

impl Object {
    /// Begins a call of a method. It is under way when this returns.
    pub(crate) fn call(&self, method: &str, args: Value) -> Answer {
        Answer::to(json!({
            "do": "call",
            "service": self.thread.service.name(),
            "thread": self.thread.name,
            "object": self.description,
            "method": method,
            "args": args,
        }))
    }

    /// Gives back what it holds, unless Redis has ended that before, since the machine was too slow
    /// for its time.
    pub(crate) async fn unlock_unless_ended(&self) {
        if let Err(thrown) = self.call("unlock", json!([])).outcome().await {
            assert!(thrown.is_not_the_holder(), "{thrown:?}");
        }
    }

    /// Calls a method without arguments.
    pub(crate) async fn get<T: FromJava>(&self, method: &str) -> T {
        self.call(method, json!([])).value().await
    }
}

impl Answer {
    /// Sends a command to the Java side.
    fn to(command: Value) -> Self {
        let (to, said) = JVM.send(command);
        Self { to, said }
    }

    /// Whether it is there already.
    pub(crate) fn has_come(&self) -> bool {
        !self.said.is_empty()
    }

    /// What the method returned.
    pub(crate) async fn value<T: FromJava>(self) -> T {
        self.value_within(AT_MOST).await
    }

    /// What the method returned, if it returns within `time`.
    pub(crate) async fn value_within<T: FromJava>(self, time: Duration) -> T {
        let (to, said) = self.said(time).await;
        assert!(said.get("error").is_none(), "{to}: {said}");
        T::from_java(&said["value"]).unwrap_or_else(|| panic!("{to}: {said}"))
    }

    /// What the method returned, or what it threw.
    pub(crate) async fn outcome(self) -> Result<Value, Thrown> {
        let (to, said) = self.said(AT_MOST).await;
        match said.get("error") {
            Some(_) => Err(Thrown::new(&to, &said)),
            None => Ok(said["value"].clone()),
        }
    }

    /// What the method threw.
    pub(crate) async fn thrown(self) -> Thrown {
        let (to, said) = self.said(AT_MOST).await;
        Thrown::new(&to, &said)
    }

    async fn said(self, time: Duration) -> (Value, Value) {
        let said = tokio::time::timeout(time, self.said).await;
        let said = said.unwrap_or_else(|_| panic!("no answer to {}", self.to));
        (self.to, said.expect("the JVM has ended"))
    }
}

impl Thrown {
    fn new(to: &Value, said: &Value) -> Self {
        let text = |field: &str| said[field].as_str().map(str::to_owned);
        let class = text("error").unwrap_or_else(|| panic!("{to}: {said}"));
        Self { class, message: text("message").unwrap(), cause: text("cause").unwrap() }
    }

    /// Whether it is what Redisson throws at who does not hold what it gives back.
    pub(crate) fn is_not_the_holder(&self) -> bool {
        self.cause == "java.lang.IllegalMonitorStateException"
            && self.class == self.cause
            && self.message.contains("not locked by current thread")
    }
}
