//! Tests every object through the gateway on a real Redis Cluster, and on a master that Sentinels
//! monitor.

mod env;
mod failover;
mod load;
mod multi_lock;
mod names;
mod objects;
mod publishing;
mod replicas;
mod scripts;
