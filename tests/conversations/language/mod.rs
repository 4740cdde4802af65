//! The parts that all conversations share: the language, scripted replies, and machines.
//!
//! A comment such as `/// S66.` above a test is the number of the scenario in `docs/reliability.md`
//! that the test shows.

mod arguments;
mod clock;
mod conversation;
mod expectations;
mod fixtures;
mod reply;
mod run;

pub(crate) use arguments::*;
pub(crate) use clock::*;
pub(crate) use conversation::Conversation;
pub(crate) use fixtures::*;
pub(crate) use reply::{Call, ScriptReply, already_yours, busy, granted, queued, renewed};
pub(crate) use run::{Run, run, run_with_needless_wakeups};
