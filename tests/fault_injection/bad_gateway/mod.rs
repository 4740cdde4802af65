//! A gateway that misbehaves: every call ends in the right kind of error, and nothing is left held.

mod acquiring;
mod certificate;
mod copies;
mod releasing;
mod renewing;
mod secrets;
