//! A real Redis for one test, and what is in it.

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Arc, Mutex};

use edgelatch::protocol::reply::{Cell, Reply};
use edgelatch::protocol::script::{ScriptCall, scripts};
use edgelatch_gateway::{Config, Gateway, RedisSource, Tokens};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, FromRedisValue, RedisError, RedisResult, Value};

use super::mail::{Mail, WHOSE};
use super::script_model::audience::{Audience, Message};

/// The token that opens the gateway in front of a test's Redis. It must show up nowhere.
pub const TOKEN: &str = "canary-token-0123456789";

/// Tells everything that is stored.
const DUMP: &str = include_str!("dump.lua");

/// A `redis-server` of the test's own, behind a gateway of the test's own; both end with the value.
pub struct Redis {
    gateway: Arc<Gateway>,
    connection: MultiplexedConnection,
    mail: Arc<Mutex<Mail>>,
    /// To which it listens besides.
    channels: Vec<String>,
    /// Which of its databases is meant, where others on the same connection mean another.
    database: Option<usize>,
    /// The hash of `dump.lua`, where all scripts are known.
    dump_sha1: Option<String>,
}

/// What a Redis has that nobody configured.
pub const DATABASES: usize = 16;

/// A call, and everything that there is afterwards.
pub struct Watched {
    /// Redis' clock in milliseconds, right before and right after it.
    pub began: u64,
    pub ended: u64,
    pub cells: Vec<Cell>,
    pub keys: Keyspace,
    /// What it has published, as far as somebody hears that.
    pub published: Vec<Message>,
}

/// A key's value and how it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub value: Content,
    /// What `PTTL` says: milliseconds, or -1 for no end.
    pub ttl: i64,
    /// When that is, by Redis' clock in milliseconds, or -1.
    pub ends_at: i64,
}

/// A key's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(String),
    Hash(BTreeMap<String, String>),
    List(Vec<String>),
    /// Members, raw bytes as hexadecimal digits where they are no text, and their scores.
    Sorted(BTreeMap<String, f64>),
}

/// Everything that is stored.
pub type Keyspace = BTreeMap<String, Stored>;

impl Redis {
    pub async fn start() -> Self {
        let config = Config::new(RedisSource::Private, Tokens::new([TOKEN]).unwrap());
        let gateway = Gateway::start(config).await.unwrap();
        let client = Client::open(url(&gateway)).unwrap();
        let mail = Arc::new(Mutex::new(Mail::default()));
        let inbox = Arc::clone(&mail);
        let config = patient().set_push_sender(move |push| inbox.lock().unwrap().arrives(push));
        let mut connection =
            client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
        connection.psubscribe("*").await.unwrap();
        let gateway = Arc::new(gateway);
        Self { gateway, connection, mail, channels: Vec::new(), database: None, dump_sha1: None }
    }

    /// The same for who works in one of its databases beside others.
    pub fn beside(&self, database: usize) -> Self {
        let (gateway, connection) = (self.gateway.clone(), self.connection.clone());
        let (mail, channels) = (self.mail.clone(), self.channels.clone());
        let (database, dump_sha1) = (Some(database), self.dump_sha1.clone());
        Self { gateway, connection, mail, channels, database, dump_sha1 }
    }

    /// From now on all scripts are known there.
    pub async fn learn(&mut self) {
        for script in scripts::ALL {
            self.ask::<String>(&["SCRIPT", "LOAD", &script.source(false)]).await;
        }
        self.dump_sha1 = Some(self.ask(&["SCRIPT", "LOAD", DUMP]).await);
    }

    /// Listens to these channels, and to those of shards of the same names, besides to all that is
    /// published otherwise.
    pub async fn listen(&mut self, channels: &[String]) {
        for channel in channels {
            self.connection.subscribe(channel).await.unwrap();
            self.ask::<Value>(&["SSUBSCRIBE", channel]).await;
        }
        self.channels.extend_from_slice(channels);
    }

    /// Who listens there.
    pub fn audience(&self) -> Audience {
        Audience::EverythingAnd(self.channels.clone())
    }

    /// The gateway in front of it.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Where the gateway listens.
    pub fn address(&self) -> std::net::SocketAddr {
        self.gateway.address()
    }

    /// Another connection, which may log in as somebody else.
    pub async fn connect(&self) -> MultiplexedConnection {
        let client = Client::open(url(&self.gateway)).unwrap();
        client.get_multiplexed_async_connection_with_config(&patient()).await.unwrap()
    }

    /// Another connection, of somebody who has these rights and no more.
    pub async fn user(&self, rights: &[impl AsRef<str>]) -> MultiplexedConnection {
        let mut words = vec!["ACL", "SETUSER", "worker", "reset", "on", ">secret"];
        words.extend(rights.iter().map(AsRef::as_ref));
        self.ask::<String>(&words).await;
        let mut connection = self.connect().await;
        let login = command(&["AUTH", "worker", "secret"]);
        assert_eq!(login.query_async::<String>(&mut connection).await.unwrap(), "OK");
        connection
    }

    /// From now on memory is full, and nothing is evicted.
    pub async fn fill(&self) {
        self.ask::<String>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
        self.ask::<String>(&["CONFIG", "SET", "maxmemory", "1"]).await;
        let error = self.try_ask::<String>(&["SET", "more", "more"]).await.unwrap_err();
        assert_eq!(error.code(), Some("OOM"));
    }

    /// How often it has run a command since its statistics were emptied.
    pub async fn ran(&self, command: &str) -> usize {
        let info: String = self.ask(&["INFO", "commandstats"]).await;
        let calls = format!("cmdstat_{command}:calls=");
        let line = info.lines().find_map(|line| line.strip_prefix(&calls));
        line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
    }

    /// Runs a command.
    pub async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_ask(words).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Runs a command that may fail.
    pub async fn try_ask<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        self.send(command(words)).await
    }

    /// Runs a command that was put together elsewhere.
    pub async fn send<T: FromRedisValue>(&self, command: redis::Cmd) -> RedisResult<T> {
        if self.database.is_none() {
            return command.query_async(&mut self.connection.clone()).await;
        }
        let mut pipe = self.own_pipe();
        let answer: (T,) =
            pipe.add_command(command).query_async(&mut self.connection.clone()).await?;
        Ok(answer.0)
    }

    /// Commands that nobody's come between, in its database.
    fn pipe(&self) -> redis::Pipeline {
        let mut pipe = redis::Pipeline::new();
        if let Some(database) = self.database {
            pipe.cmd("SELECT").arg(database).ignore();
        }
        pipe
    }

    /// The same. What is published from then on is by these commands.
    fn own_pipe(&self) -> redis::Pipeline {
        let mut pipe = self.pipe();
        pipe.cmd("PUBLISH").arg(WHOSE).arg(self.place()).ignore();
        pipe
    }

    fn place(&self) -> usize {
        self.database.unwrap_or(0)
    }

    /// Runs a call, and looks at all that there is then; nothing comes between.
    pub async fn watch(&self, call: &ScriptCall) -> RedisResult<Watched> {
        let mut pipe = self.own_pipe();
        pipe.cmd("TIME").add_command(evaluation(call, self.dump_sha1.is_some()));
        pipe.add_command(self.dumps());
        let (began, cells, (ended, keys)): (_, Vec<Value>, (_, Vec<Vec<Value>>)) =
            pipe.query_async(&mut self.connection.clone()).await?;
        // Redis sends what a command has published with its answer, so before the next one's.
        let published = self.mail.lock().unwrap().take(self.place());
        let cells = cells.into_iter().map(cell).collect::<Result<_, _>>()?;
        let keys = keys.into_iter().map(stored).collect();
        Ok(Watched { began: millis(began), ended, cells, keys, published })
    }

    /// Runs a call; answers what its script said, its echo checked.
    pub async fn run(&self, call: &ScriptCall) -> Reply {
        let cells = self.cells(call).await.unwrap();
        Reply::read(&cells, call.request).unwrap_or_else(|| panic!("no reply: {cells:?}"))
    }

    /// Runs a call that may fail.
    pub async fn cells(&self, call: &ScriptCall) -> RedisResult<Vec<Cell>> {
        run_on(&mut self.connection.clone(), call).await
    }

    /// What was published since the last question: channels and messages.
    pub async fn published(&mut self) -> Vec<(String, String)> {
        // Messages come on the same connection, so all that were published before are here then.
        self.ask::<String>(&["PING"]).await;
        let published = self.mail.lock().unwrap().take(self.place());
        published.into_iter().map(|message| (message.channel, message.text)).collect()
    }

    /// Everything that is stored.
    pub async fn dump(&self) -> Keyspace {
        self.look().await.0
    }

    /// Everything that is stored, and Redis' clock in milliseconds right after.
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
        millis(self.ask(&["TIME"]).await)
    }
}

/// Everything that is stored in a Redis, and its clock in milliseconds right after.
pub async fn look_at(connection: &mut MultiplexedConnection) -> (Keyspace, u64) {
    let dump = redis::cmd("EVAL").arg(DUMP).arg(0).take();
    let (now, keys): (_, Vec<Vec<Value>>) = dump.query_async(connection).await.unwrap();
    (keys.into_iter().map(stored).collect(), now)
}

fn millis((seconds, micros): (u64, u64)) -> u64 {
    seconds * 1000 + micros / 1000
}

/// The rights to keys and channels, and to all of these commands but one.
pub fn rights(on: &[impl AsRef<str>], commands: &[&str], missing: &str) -> Vec<String> {
    let commands = commands.iter().filter(|command| **command != missing);
    let on = on.iter().map(|on| on.as_ref().to_owned());
    on.chain(commands.map(|command| format!("+{command}"))).collect()
}

/// However busy the machine is, Redis is there.
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

/// Runs a call on some connection.
pub async fn run_on(
    connection: &mut MultiplexedConnection,
    call: &ScriptCall,
) -> RedisResult<Vec<Cell>> {
    let values: Vec<Value> = evaluation(call, false).query_async(connection).await?;
    values.into_iter().map(cell).collect()
}

/// A call as a command; by its hash where that has one and `is_known`.
fn evaluation(call: &ScriptCall, is_known: bool) -> redis::Cmd {
    let mut command = match call.sha1(false).filter(|_| is_known) {
        Some(sha1) => redis::cmd("EVALSHA").arg(sha1).take(),
        None => redis::cmd("EVAL").arg(call.source(false)).take(),
    };
    command.arg(call.keys().len()).arg(call.keys()).arg(call.args());
    command
}

/// One key, as `dump.lua` tells it.
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

fn cell(value: Value) -> Result<Cell, RedisError> {
    match value {
        Value::Int(number) => Ok(Cell::Int(number)),
        other => Ok(Cell::Text(String::from_redis_value(other)?)),
    }
}
