//! The parts that all conversations share: the language, scripted replies, and machines.

mod clock;
mod conversation;
mod expectations;
mod fixtures;
mod reply;
mod run;

pub(crate) use clock::{Clocks, SERVER_START, START, held_at_most, known_clock, ms};
pub(crate) use conversation::Conversation;
pub(crate) use fixtures::*;
pub(crate) use reply::{Call, ScriptReply, already_yours, busy, granted, queued, renewed};
pub(crate) use run::{Run, run, run_with_needless_wakeups};
