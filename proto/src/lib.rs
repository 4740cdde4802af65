#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;

pub mod engine;
pub mod error;
pub mod machine;
pub mod name;
pub mod protocol;
pub mod time;
pub mod timing;
