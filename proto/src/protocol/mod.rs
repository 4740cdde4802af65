#![doc = include_str!("README.md")]
//! # The files
//!
//! Pure: no clock, no I/O, no randomness. [`calls`] builds calls of [scripts](script), [`gateway`]
//! encodes them as requests and decodes responses, [`exchange`] joins the two for one call, and
//! [`reply`] is the frame of every script's reply.

pub mod calls;
pub mod exchange;
pub mod gateway;
mod highwayhash;
pub mod key;
pub mod reply;
pub mod scope;
pub mod script;
pub mod slot;
