//! The program `edgelatch`, in front of a real gateway and Redis.

#![cfg(unix)]

mod cron;
mod loss;
mod objects;
mod run;
mod secrets;
mod signals;
mod support;
mod terminal;
mod waiting;
mod watch;
