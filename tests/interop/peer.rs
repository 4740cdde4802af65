//! The Java side as tests use it: services, their threads, and the objects that threads use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::jvm::JVM;
use test_support::test_env::until;

/// The time limit of a test without contention: reached only by a failing one.
const AT_MOST: Duration = Duration::from_secs(300);

/// A Redisson client with its threads: one Java service. It may have further clients, of other
/// Redis servers.
#[derive(Clone)]
pub(crate) struct Service(Arc<[Opened]>);

struct Opened(String);

/// A Java thread: a holder in Redisson's terms. It executes one call after the other.
#[derive(Clone)]
pub(crate) struct Thread {
    service: Service,
    name: String,
}

/// One of Redisson's objects, used by a thread.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) thread: Thread,
    description: Value,
}

/// The future response of the Java side.
pub(crate) struct Answer {
    to: Value,
    response: oneshot::Receiver<Value>,
}

/// An exception of a method.
#[derive(Debug)]
pub(crate) struct Thrown {
    class: String,
    pub(crate) message: String,
    /// The class of its root cause.
    pub(crate) cause: String,
}

/// A return value of a method.
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
    /// Connects clients with these configurations, in Redisson's format. The first client has the
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

    /// Runs several contending threads of its own; `Contention.java` documents the command.
    pub(crate) fn contend(&self, mut question: Value) -> Answer {
        question["do"] = json!("contend");
        question["service"] = json!(self.name());
        Answer::to(question)
    }
}

impl Drop for Opened {
    /// Ends like a service that is killed: it does not release its holds.
    fn drop(&mut self) {
        // In a test that has failed, the JVM may be what failed.
        if !thread::panicking() {
            drop(Answer::to(json!({ "do": "close", "service": self.0 })));
        }
    }
}

impl Thread {
    /// The object with this description.
    pub(crate) fn object(&self, description: Value) -> Object {
        Object { thread: self.clone(), description }
    }

    /// The holder of the thread in Redis.
    pub(crate) async fn holder(&self) -> String {
        self.query("holder").value().await
    }

    /// Waits until the thread is in one of Redisson's waits and does not continue by itself. It may
    /// leave the wait for a moment when a message wakes it.
    pub(crate) async fn waits(&self) {
        until(async || self.query("waits").value().await).await;
    }

    fn query(&self, what: &str) -> Answer {
        Answer::to(json!({ "do": what, "service": self.service.name(), "thread": self.name }))
    }
}

impl Object {
    /// Starts a call of a method. It is pending when this returns.
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

    /// Releases the hold, unless Redis has expired it before, since the machine was too slow.
    pub(crate) async fn unlock_unless_ended(&self) {
        if let Err(thrown) = self.call("unlock", json!([])).outcome().await {
            assert!(thrown.is_not_the_holder(), "{thrown:?}");
        }
    }

    /// Calls a method that waits for a while. On a slow machine the time may be over before
    /// Redisson has subscribed; where it reports this as an exception, the method is called again.
    pub(crate) async fn call_with_wait<T: FromJava>(&self, method: &str, args: Value) -> T {
        loop {
            match self.call(method, args.clone()).outcome().await {
                Err(thrown) if thrown.is_short_wait() => {}
                outcome => {
                    let value = outcome.unwrap_or_else(|thrown| panic!("{method}: {thrown:?}"));
                    return T::from_java(&value).unwrap_or_else(|| panic!("{method}: {value}"));
                }
            }
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
        let (to, response) = JVM.send(command);
        Self { to, response }
    }

    /// Whether the response has arrived.
    pub(crate) fn has_come(&self) -> bool {
        !self.response.is_empty()
    }

    /// The method's result.
    pub(crate) async fn value<T: FromJava>(self) -> T {
        self.value_within(AT_MOST).await
    }

    /// The method's result, if it returns within `time`.
    pub(crate) async fn value_within<T: FromJava>(self, time: Duration) -> T {
        let (to, response) = self.response(time).await;
        assert!(response.get("error").is_none(), "{to}: {response}");
        T::from_java(&response["value"]).unwrap_or_else(|| panic!("{to}: {response}"))
    }

    /// The method's result or exception.
    pub(crate) async fn outcome(self) -> Result<Value, Thrown> {
        let (to, response) = self.response(AT_MOST).await;
        match response.get("error") {
            Some(_) => Err(Thrown::new(&to, &response)),
            None => Ok(response["value"].clone()),
        }
    }

    /// Asserts that the method has acquired nothing in its time.
    pub(crate) async fn refusal(self) {
        match self.outcome().await {
            Ok(value) => assert_eq!(value, json!(false)),
            Err(thrown) => assert!(thrown.is_short_wait(), "{thrown:?}"),
        }
    }

    /// The method's exception.
    pub(crate) async fn thrown(self) -> Thrown {
        let (to, response) = self.response(AT_MOST).await;
        Thrown::new(&to, &response)
    }

    async fn response(self, time: Duration) -> (Value, Value) {
        let response = tokio::time::timeout(time, self.response).await;
        let response = response.unwrap_or_else(|_| panic!("no answer to {}", self.to));
        (self.to, response.expect("the JVM has ended"))
    }
}

impl Thrown {
    fn new(to: &Value, response: &Value) -> Self {
        let text = |field: &str| response[field].as_str().map(str::to_owned);
        let class = text("error").unwrap_or_else(|| panic!("{to}: {response}"));
        Self { class, message: text("message").unwrap(), cause: text("cause").unwrap() }
    }

    /// Whether it is Redisson's exception for a wait that was over before it had subscribed.
    pub(crate) fn is_short_wait(&self) -> bool {
        self.cause == "org.redisson.client.RedisTimeoutException"
            && self.message.starts_with("Unable to acquire subscription lock")
    }

    /// Whether it is Redisson's exception for a thread that releases what it does not hold.
    pub(crate) fn is_not_the_holder(&self) -> bool {
        self.cause == "java.lang.IllegalMonitorStateException"
            && self.class == self.cause
            && self.message.contains("not locked by current thread")
    }
}
