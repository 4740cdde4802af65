//! The cost of a request to the gateway as numbers: how often it allocates memory, and how many
//! bytes. Both are linear in the size of the request, up to the longest that is allowed.
//!
//! The gateway runs in this process, and Redis in another. The test sends bytes that exist before
//! it counts, and reads into memory that it has, so it counts the gateway's memory alone.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

mod requests;

use std::alloc::System;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use edgelatch_gateway::{Config, Gateway, RedisSource, ScopeKeys, Tokens};
use requests::{Credentials, Request, Shape};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::task::spawn_blocking;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const TOKEN: &str = "the-token-of-tests";
const KEY: &str = "a key of thirty-two bytes or more";
/// The numbers of allocations and of allocated bytes that a request of any size may add: a task, a
/// log line, the driver's check of its connection.
const FIXED: Memory = Memory { times: 300, bytes: 256 * 1024 };
/// A request of twice the size costs at most this many hundredths of the smaller one: vectors grow
/// by doubling, so the last step may come late.
const TWICE: u64 = 220;

/// Allocated memory. A larger piece in the place of a smaller one counts by the difference.
#[derive(Clone, Copy, Debug)]
struct Memory {
    times: u64,
    bytes: u64,
}

impl Memory {
    fn is_within(self, other: Self) -> bool {
        self.times <= other.times && self.bytes <= other.bytes
    }
}

/// The largest cost of a request: a body is stored once, once in commands, and once as the driver
/// sends it; a word is a range of its command; a command has a few lists, and a reply with its
/// JSON. With a scoped token the names of a call are parsed, and its keys are spelled again.
fn bound(request: &Request) -> Memory {
    let count = |number: usize| u64::try_from(number).unwrap();
    let (bytes, words, commands) =
        (count(request.body.len()), count(request.words), count(request.commands));
    let (per_byte, per_word) = if request.has_scoped_token { (8, 2) } else { (3, 0) };
    Memory {
        times: FIXED.times + bytes / 4_096 + per_word * words + 20 * commands,
        bytes: FIXED.bytes + per_byte * bytes + 96 * words + 1_536 * commands,
    }
}

/// Sends a request, and reads the response to its end. Returns its status and how much memory was
/// allocated in between.
async fn cost(gateway: SocketAddr, request: Request) -> (u16, Memory) {
    spawn_blocking(move || {
        let bytes = request.bytes(&Credentials::new(TOKEN, KEY));
        let mut response = vec![0; 1 << 16];
        let mut head = Vec::with_capacity(64);
        let mut connection = TcpStream::connect(gateway).unwrap();
        let region = Region::new(ALLOCATOR);
        connection.write_all(&bytes).unwrap();
        loop {
            let length = connection.read(&mut response).unwrap();
            if length == 0 {
                break;
            }
            let part = length.min(head.capacity() - head.len());
            head.extend_from_slice(&response[..part]);
        }
        let change = region.change();
        let status = str::from_utf8(&head[9..12]).unwrap().parse().unwrap();
        let times = u64::try_from(change.allocations + change.reallocations).unwrap();
        (status, Memory { times, bytes: u64::try_from(change.bytes_allocated).unwrap() })
    })
    .await
    .unwrap()
}

/// The min of two runs: buffers of the first one, and work in the background, do not count.
async fn min_memory(gateway: SocketAddr, shape: &Shape, size: usize) -> Memory {
    let mut min = Memory { times: u64::MAX, bytes: u64::MAX };
    for _ in 0..2 {
        let (status, memory) = cost(gateway, shape.request(size)).await;
        assert_eq!(status, shape.status, "{} of size {size}", shape.name);
        min.times = min.times.min(memory.times);
        min.bytes = min.bytes.min(memory.bytes);
    }
    min
}

// One test, since the allocator counts for the whole process.
// Slow: requests of several megabytes are built and parsed without optimization.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_of_a_request_is_linear_in_its_size_and_bounded() {
    let mut config = Config::new(RedisSource::Private, Tokens::new([TOKEN]).unwrap());
    config.scope_keys = Some(ScopeKeys::new([KEY]).unwrap());
    // The rates of a client are tested elsewhere.
    let many = u32::MAX.try_into().unwrap();
    (config.client_requests, config.client_commands) = (many, many);
    let gateway = Gateway::start(config).await.unwrap();
    for shape in requests::shapes() {
        let half = min_memory(gateway.address(), &shape, shape.size / 2).await;
        let whole = min_memory(gateway.address(), &shape, shape.size).await;
        let request = shape.request(shape.size);
        let bound = bound(&request);
        println!("{}: {half:?}, {whole:?}, bound {bound:?}", shape.name);
        assert!(whole.is_within(bound), "{}: {whole:?}, bound {bound:?}", shape.name);
        let twice = Memory {
            times: half.times * TWICE / 100 + FIXED.times,
            bytes: half.bytes * TWICE / 100 + FIXED.bytes,
        };
        assert!(whole.is_within(twice), "{}: {half:?}, {whole:?}", shape.name);
    }
}
