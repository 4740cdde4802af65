//! A faulty gateway: every call succeeds, or ends in the right kind of error that says whether a
//! hold may be left.

mod acquiring;
mod certificate;
mod copies;
mod releasing;
mod renewing;
mod secrets;
