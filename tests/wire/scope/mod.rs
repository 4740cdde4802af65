//! The names and rights that a gateway reads from every call of the library, and from calls that
//! were changed on the way.

mod changed;
mod channels;
mod every_call;
