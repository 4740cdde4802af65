//! Objects on one Redis.

mod client;
mod count_down_latch;
mod fair;
mod group;
mod lock;
mod lock_without_rules;
mod network;
mod plan;
mod premises;
mod properties;
mod read_write;
mod search;
mod seen;
mod semaphores;
mod sights;
mod stage;
mod stand;
mod unconfirmed;
mod world;
