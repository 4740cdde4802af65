//! The program `edgelatch`, in front of a real gateway and Redis.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![expect(clippy::panic, reason = "a test ends at the first surprise")]
#![expect(clippy::indexing_slicing, reason = "a test ends at the first surprise")]

mod cron;
mod loss;
mod objects;
mod recipes;
mod run;
mod secrets;
mod signals;
mod support;
mod terminal;
mod waiting;
mod watch;
