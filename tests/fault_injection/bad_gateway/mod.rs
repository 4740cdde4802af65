//! A faulty gateway: every call ends in the right kind of error, and no hold is left.

mod acquiring;
mod certificate;
mod copies;
mod releasing;
mod renewing;
mod secrets;
