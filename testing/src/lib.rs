//! A model in memory of edgelatch's scripts, which the tests compare with a real Redis.

pub mod script_model;
