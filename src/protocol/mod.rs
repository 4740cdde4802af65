#![doc = include_str!("README.md")]
//! # The files
//!
//! Pure: no clock, no I/O, no randomness. [`calls`] makes calls of [scripts](script), [`gateway`]
//! makes requests of them and reads responses, [`exchange`] joins the two for one call, [`reply`]
//! is the frame in which every script answers.

pub mod calls;
pub mod exchange;
pub mod gateway;
mod highway;
pub mod key;
pub mod reply;
pub mod scope;
pub mod script;
pub mod slot;
