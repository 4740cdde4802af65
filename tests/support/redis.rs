//! A real Redis for one test, and its content.

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Arc, Mutex};

use edgelatch_gateway::{Config, Gateway, RedisSource, Tokens};
use edgelatch_proto::protocol::reply::{Reply, RespValue};
use edgelatch_proto::protocol::script::{ScriptCall, scripts};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, FromRedisValue, RedisError, RedisResult, Value};

use super::pubsub_capture::{DATABASE_CHANNEL, PubsubCapture};
use super::script_model::subscribers::{Message, Subscribers};

/// The token of the gateway in front of a test's Redis. It must not appear in any output.
pub const TOKEN: &str = "canary-token-0123456789";

/// Reports everything that is stored.
const DUMP: &str = include_str!("dump.lua");

/// A `redis-server` of the test's own behind a gateway of its own; dropping the value ends both.
pub struct Redis {
    gateway: Arc<Gateway>,
    connection: MultiplexedConnection,
    capture: Arc<Mutex<PubsubCapture>>,
    /// Channels that it subscribes to, besides the pattern for all.
    channels: Vec<String>,
    /// The database to use, if several values share the connection.
    database: Option<usize>,
    /// The hash of `dump.lua`, once all scripts are loaded.
    dump_sha1: Option<String>,
}

/// The default number of databases of a Redis.
pub const DATABASES: usize = 16;

/// The outcome of a call, and everything that is stored afterwards.
pub struct Watched {
    /// Redis' clock in milliseconds, right before and right after it.
    pub began: u64,
    pub ended: u64,
    pub cells: Vec<RespValue>,
    pub keys: Keyspace,
    /// The messages that it published, as far as this connection is subscribed to them.
    pub published: Vec<Message>,
}

/// A key's value and its expiry.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub value: Content,
    /// The reply of `PTTL`: milliseconds, or -1 for no expiry.
    pub ttl: i64,
    /// The time of its expiry by Redis' clock in milliseconds, or -1.
    pub ends_at: i64,
}

/// A key's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(String),
    Hash(BTreeMap<String, String>),
    List(Vec<String>),
    /// Members with their scores; members that are not text are shown as hexadecimal digits.
    Sorted(BTreeMap<String, f64>),
}

/// Everything that is stored.
pub type Keyspace = BTreeMap<String, Stored>;

impl Redis {
    pub async fn start() -> Self {
        let config = Config::new(RedisSource::Private, Tokens::new([TOKEN]).unwrap());
        let gateway = Gateway::start(config).await.unwrap();
        let client = Client::open(url(&gateway)).unwrap();
        let capture = Arc::new(Mutex::new(PubsubCapture::default()));
        let inbox = Arc::clone(&capture);
        let config = patient().set_push_sender(move |push| inbox.lock().unwrap().on_push(push));
        let mut connection =
            client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
        connection.psubscribe("*").await.unwrap();
        let gateway = Arc::new(gateway);
        Self { gateway, connection, capture, channels: Vec::new(), database: None, dump_sha1: None }
    }

    /// The same server, limited to one of its databases, so that tests can share it.
    pub fn beside(&self, database: usize) -> Self {
        let (gateway, connection) = (self.gateway.clone(), self.connection.clone());
        let (capture, channels) = (self.capture.clone(), self.channels.clone());
        let (database, dump_sha1) = (Some(database), self.dump_sha1.clone());
        Self { gateway, connection, capture, channels, database, dump_sha1 }
    }

    /// Loads all scripts, so that each call takes a single request.
    pub async fn load_scripts(&mut self) {
        for script in scripts::ALL {
            self.query::<String>(&["SCRIPT", "LOAD", &script.source(false)]).await;
        }
        self.dump_sha1 = Some(self.query(&["SCRIPT", "LOAD", DUMP]).await);
    }

    /// Subscribes to these channels and to the shard channels of the same names. Everything that is
    /// published otherwise arrives through a pattern.
    pub async fn listen(&mut self, channels: &[String]) {
        for channel in channels {
            self.connection.subscribe(channel).await.unwrap();
            self.query::<Value>(&["SSUBSCRIBE", channel]).await;
        }
        self.channels.extend_from_slice(channels);
    }

    /// The subscriptions of this connection.
    pub fn subscribers(&self) -> Subscribers {
        Subscribers::PatternAnd(self.channels.clone())
    }

    /// The gateway in front of it.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The address of the gateway.
    pub fn address(&self) -> std::net::SocketAddr {
        self.gateway.address()
    }

    /// Opens another connection, which may log in as another user.
    pub async fn connect(&self) -> MultiplexedConnection {
        let client = Client::open(url(&self.gateway)).unwrap();
        client.get_multiplexed_async_connection_with_config(&patient()).await.unwrap()
    }

    /// Opens a connection of a user that has only these rights.
    pub async fn user(&self, rights: &[impl AsRef<str>]) -> MultiplexedConnection {
        let mut words = vec!["ACL", "SETUSER", "worker", "reset", "on", ">secret"];
        words.extend(rights.iter().map(AsRef::as_ref));
        self.query::<String>(&words).await;
        let mut connection = self.connect().await;
        let login = command(&["AUTH", "worker", "secret"]);
        assert_eq!(login.query_async::<String>(&mut connection).await.unwrap(), "OK");
        connection
    }

    /// Makes memory full from now on; nothing is evicted.
    pub async fn fill(&self) {
        self.query::<String>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
        self.query::<String>(&["CONFIG", "SET", "maxmemory", "1"]).await;
        let error = self.try_query::<String>(&["SET", "more", "more"]).await.unwrap_err();
        assert_eq!(error.code(), Some("OOM"));
    }

    /// The number of executions of a command since the statistics were reset.
    pub async fn ran(&self, command: &str) -> usize {
        let info: String = self.query(&["INFO", "commandstats"]).await;
        let calls = format!("cmdstat_{command}:calls=");
        let line = info.lines().find_map(|line| line.strip_prefix(&calls));
        line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
    }

    /// Runs a command.
    pub async fn query<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_query(words).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Runs a command that may fail.
    pub async fn try_query<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        self.send(command(words)).await
    }

    /// Runs a command that the caller has built.
    pub async fn send<T: FromRedisValue>(&self, command: redis::Cmd) -> RedisResult<T> {
        if self.database.is_none() {
            return command.query_async(&mut self.connection.clone()).await;
        }
        let mut pipe = self.own_pipe();
        let answer: (T,) =
            pipe.add_command(command).query_async(&mut self.connection.clone()).await?;
        Ok(answer.0)
    }

    /// A transaction in its database: no other client's command runs in between.
    fn pipe(&self) -> redis::Pipeline {
        let mut pipe = redis::Pipeline::new();
        if let Some(database) = self.database {
            pipe.cmd("SELECT").arg(database).ignore();
        }
        pipe
    }

    /// A transaction in its database whose publications are recorded as its own.
    fn own_pipe(&self) -> redis::Pipeline {
        let mut pipe = self.pipe();
        pipe.cmd("PUBLISH").arg(DATABASE_CHANNEL).arg(self.place()).ignore();
        pipe
    }

    fn place(&self) -> usize {
        self.database.unwrap_or(0)
    }

    /// Runs a call and reads everything that is stored, in one transaction.
    pub async fn watch(&self, call: &ScriptCall) -> RedisResult<Watched> {
        let mut pipe = self.own_pipe();
        pipe.cmd("TIME").add_command(evaluation(call, self.dump_sha1.is_some()));
        pipe.add_command(self.dumps());
        let (began, cells, (ended, keys)): (_, Vec<Value>, (_, Vec<Vec<Value>>)) =
            pipe.query_async(&mut self.connection.clone()).await?;
        // Redis sends the messages of a command before the reply to the next one.
        let published = self.capture.lock().unwrap().take(self.place());
        let cells = cells.into_iter().map(cell).collect::<Result<_, _>>()?;
        let keys = keys.into_iter().map(stored).collect();
        Ok(Watched { began: millis(began), ended, cells, keys, published })
    }

    /// Runs a call; returns the script's reply, with its echo checked.
    pub async fn run(&self, call: &ScriptCall) -> Reply {
        let cells = self.cells(call).await.unwrap();
        Reply::read(&cells, call.request).unwrap_or_else(|| panic!("no reply: {cells:?}"))
    }

    /// Runs a call that may fail.
    pub async fn cells(&self, call: &ScriptCall) -> RedisResult<Vec<RespValue>> {
        run_on(&mut self.connection.clone(), call).await
    }

    /// The channels and messages that were published since the last call.
    pub async fn published(&mut self) -> Vec<(String, String)> {
        // Messages arrive on the same connection, so all earlier ones have arrived after this
        // reply.
        self.query::<String>(&["PING"]).await;
        let published = self.capture.lock().unwrap().take(self.place());
        published.into_iter().map(|message| (message.channel, message.text)).collect()
    }

    /// Everything that is stored.
    pub async fn dump(&self) -> Keyspace {
        self.look().await.0
    }

    /// Everything that is stored, and Redis' clock in milliseconds right afterwards.
    pub async fn look(&self) -> (Keyspace, u64) {
        let mut pipe = self.pipe();
        pipe.add_command(self.dumps());
        let ((now, keys),): ((_, Vec<Vec<Value>>),) =
            pipe.query_async(&mut self.connection.clone()).await.unwrap();
        (keys.into_iter().map(stored).collect(), now)
    }

    fn dumps(&self) -> redis::Cmd {
        match &self.dump_sha1 {
            Some(sha1) => redis::cmd("EVALSHA").arg(sha1).arg(0).take(),
            None => redis::cmd("EVAL").arg(DUMP).arg(0).take(),
        }
    }

    /// Redis' clock in milliseconds.
    pub async fn now_ms(&self) -> u64 {
        millis(self.query(&["TIME"]).await)
    }
}

/// Everything that is stored in a Redis, and its clock in milliseconds right afterwards.
pub async fn look_at(connection: &mut MultiplexedConnection) -> (Keyspace, u64) {
    let dump = redis::cmd("EVAL").arg(DUMP).arg(0).take();
    let (now, keys): (_, Vec<Vec<Value>>) = dump.query_async(connection).await.unwrap();
    (keys.into_iter().map(stored).collect(), now)
}

fn millis((seconds, micros): (u64, u64)) -> u64 {
    seconds * 1000 + micros / 1000
}

/// The rights to `on` (keys and channels), and to all of `commands` except `missing`.
pub fn rights(on: &[impl AsRef<str>], commands: &[&str], missing: &str) -> Vec<String> {
    let commands = commands.iter().filter(|command| **command != missing);
    let on = on.iter().map(|on| on.as_ref().to_owned());
    on.chain(commands.map(|command| format!("+{command}"))).collect()
}

/// A connection without time limits: a busy machine must not fail a test.
pub fn patient() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None)
}

fn url(gateway: &Gateway) -> String {
    format!("unix://{}?protocol=resp3", gateway.redis_socket().unwrap().display())
}

fn command(words: &[&str]) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    command.arg(words);
    command
}

/// Runs a call on this connection.
pub async fn run_on(
    connection: &mut MultiplexedConnection,
    call: &ScriptCall,
) -> RedisResult<Vec<RespValue>> {
    let values: Vec<Value> = evaluation(call, false).query_async(connection).await?;
    values.into_iter().map(cell).collect()
}

/// A call as a command; `EVALSHA` if its script has a hash and `is_known`.
fn evaluation(call: &ScriptCall, is_known: bool) -> redis::Cmd {
    let mut command = match call.sha1(false).filter(|_| is_known) {
        Some(sha1) => redis::cmd("EVALSHA").arg(sha1).take(),
        None => redis::cmd("EVAL").arg(call.source(false)).take(),
    };
    command.arg(call.keys().len()).arg(call.keys()).arg(call.args());
    command
}

/// Reads one key in the form of `dump.lua`.
fn stored(entry: Vec<Value>) -> (String, Stored) {
    let mut parts = entry.into_iter();
    let mut text = || {
        let bytes = match parts.next()? {
            Value::BulkString(bytes) => bytes,
            other => redis::from_redis_value::<String>(other).unwrap().into_bytes(),
        };
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(String::from_utf8(bytes).unwrap_or_else(|error| hex(error.as_bytes())))
    };
    let (key, kind) = (text().unwrap(), text().unwrap());
    let mut number = || text().unwrap().parse().unwrap();
    let (ttl, ends_at) = (number(), number());
    let value = match kind.as_str() {
        "string" => Content::Text(text().unwrap()),
        "list" => Content::List(iter::from_fn(text).collect()),
        "zset" => {
            Content::Sorted(iter::from_fn(|| Some((text()?, text()?.parse().unwrap()))).collect())
        }
        _ => Content::Hash(iter::from_fn(|| Some((text()?, text()?))).collect()),
    };
    (key, Stored { value, ttl, ends_at })
}

fn cell(value: Value) -> Result<RespValue, RedisError> {
    match value {
        Value::Int(number) => Ok(RespValue::Int(number)),
        other => Ok(RespValue::Text(String::from_redis_value(other)?)),
    }
}
