//! What a gateway reads from every call that the library makes, and from calls that were changed on
//! the way.

mod changed;
mod channels;
mod every_call;
