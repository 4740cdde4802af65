//! Locks of several parts.

mod client;
mod exhaustive;
mod graph;
mod order;
mod plan;
mod reachability;
mod simulation;
mod state;
mod tokens;
mod votes;
mod world;
