//! Objects on one Redis.

mod client;
mod count_down_latch;
mod fair;
mod fair_read_write;
mod group;
mod lock;
mod lock_without_rules;
mod network;
mod plan;
mod properties;
mod reachability;
mod read_write;
mod run_record;
mod search;
mod semaphores;
mod stage;
mod stored_holds;
mod unconfirmed;
mod vacuity;
mod world;
