//! Limits what each client uses, so that no client blocks the gateway or Redis for other clients.
//!
//! A client with a scoped token is not trusted. It has a share, and so has its address: rates, and
//! limits of what it uses at once. A client with a full token is trusted and has neither. Requests
//! without a token, such as health checks, have a rate per address. Memory for bodies, streams, and
//! connections for `WAIT` are also bounded for all clients together, and a quarter of each is
//! reserved for full tokens.

mod admitted;
mod connections;
#[cfg(test)]
mod fairness;
mod names;
mod pool;
mod rate;
mod shares;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::MonotonicClock;
use tokio::time::Instant;

use self::admitted::Counted;
pub(crate) use self::admitted::{Admitted, ClientKey, Source};
pub(crate) use self::connections::ConnectionLimits;
use self::names::Names;
pub(crate) use self::pool::PoolPermit;
use self::pool::{Pool, try_acquire_both};
use self::rate::Rate;
use self::shares::{Capacity, Shares};
use crate::config::Config;
use crate::failure::Failure;

/// The number of bytes of a body that count as one more command, since parsing them takes time.
const BYTES_PER_COMMAND: usize = 4096;
/// The least limit of the commands that one request may count as, however low the limit of a
/// pipeline. A single call with the largest number of names counts as fewer.
const MIN_COMMAND_LIMIT: usize = 128;
/// The `Retry-After` of a request for which no permit is free: requests and waits end within
/// seconds.
pub(crate) const RETRY_SOON: Duration = Duration::from_secs(1);
/// The divisor of the shared body memory and waits that gives the share of one client. An address
/// may use at most half of each.
const CLIENT_SHARE_DIVISOR: usize = 16;

/// A reached limit. Nothing was sent to Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// A limit of the client or of its address. The client may retry after this time.
    Client(Duration),
    /// A limit of all clients together. The client may retry after this time.
    Gateway(Duration),
}

/// The limits, and their present use.
pub(crate) struct Limits {
    /// The largest body of a request with a full token, in bytes.
    max_body: usize,
    /// The largest body of a request with a scoped token, in bytes.
    max_client_body: usize,
    clients: Shares<ClientKey>,
    addresses: Shares<IpAddr>,
    /// Health checks per address. They need no token, so they count apart from other requests.
    health_checks: Rate<IpAddr>,
    /// Requests without a valid token, and preflights, per address.
    unauthenticated: Rate<IpAddr>,
    client_names: Names,
    address_names: Names,
    /// The most commands that one request may count as.
    max_commands: usize,
    /// A permit for each byte of a body in memory.
    bodies: Pool,
    streams: Pool,
    /// A permit for each request that waits for replicas, on a connection of its own.
    waits: Pool,
}

impl Limits {
    pub(crate) fn new(config: &Config) -> Self {
        let max_client_body = config.client_body_limit.min(config.body_limit);
        let max_commands = config.pipeline_limit.max(MIN_COMMAND_LIMIT);
        let burst = max_commands + max_client_body / BYTES_PER_COMMAND;
        let burst = u32::try_from(burst).unwrap_or(u32::MAX);
        let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        let clients = config.address_clients;
        let clients_per_address = usize::try_from(clients.get()).unwrap_or(usize::MAX);
        let client = Capacity {
            requests: config.client_concurrency,
            streams: config.client_streams,
            waits: config.wait_limit.div_ceil(CLIENT_SHARE_DIVISOR),
            body_bytes: (config.body_memory / CLIENT_SHARE_DIVISOR).max(max_client_body),
        };
        let address = Capacity {
            requests: client.requests.saturating_mul(clients_per_address),
            streams: client.streams.saturating_mul(clients_per_address),
            waits: client
                .waits
                .saturating_mul(clients_per_address)
                .min(config.wait_limit.div_ceil(2)),
            body_bytes: client
                .body_bytes
                .saturating_mul(clients_per_address)
                .min((config.body_memory / 2).max(client.body_bytes)),
        };
        let (requests, commands) = (config.client_requests, config.client_commands);
        let per_address =
            || Rate::new(requests.saturating_mul(clients), NonZeroU32::MIN, MonotonicClock);
        Self {
            max_body: config.body_limit,
            max_client_body,
            clients: Shares::new(requests, commands, burst, client),
            addresses: Shares::new(
                requests.saturating_mul(clients),
                commands.saturating_mul(clients),
                burst,
                address,
            ),
            health_checks: per_address(),
            unauthenticated: per_address(),
            client_names: Names::new(config.client_names),
            address_names: Names::new(config.client_names.saturating_mul(clients_per_address)),
            max_commands,
            bodies: Pool::new(config.body_memory.max(config.body_limit), client.body_bytes),
            streams: Pool::new(config.stream_limit, 1),
            waits: Pool::new(config.wait_limit, 1),
        }
    }

    /// Admits a request, or returns the limit that it would exceed. `source` is `None` for full
    /// tokens.
    pub(crate) fn admit(&self, source: Option<Source>) -> Result<Admitted, Exceeded> {
        let Some(source) = source else { return Ok(Admitted(None)) };
        // The client's own rate is checked first: a client beyond it uses nothing of its address's
        // rate, which other clients share. A request that its address's rate or a limit of requests
        // at once refuses has used the client's rate: it costs the gateway as much as another one,
        // and the rate is whole again after `BURST_SECONDS`.
        self.clients.request(&source.client).map_err(Exceeded::Client)?;
        self.addresses.request(&source.address).map_err(Exceeded::Client)?;
        let shares = [self.clients.share(&source.client), self.addresses.share(&source.address)];
        let requests = try_acquire_both(&shares, |share| &share.requests, 1)?;
        Ok(Admitted(Some(Counted { source, shares, _requests: requests })))
    }

    /// Counts a health check. An address may send as many as its clients may send requests.
    pub(crate) fn count_health_check(&self, address: IpAddr) -> Result<(), Exceeded> {
        self.health_checks.take(&address, NonZeroU32::MIN).map_err(Exceeded::Client)
    }

    /// Counts a request without a valid token, or a preflight. An address may send as many as its
    /// clients may send requests with one.
    pub(crate) fn count_unauthenticated(&self, address: IpAddr) -> Result<(), Exceeded> {
        self.unauthenticated.take(&address, NonZeroU32::MIN).map_err(Exceeded::Client)
    }

    /// Returns the largest body that the request may have, in bytes.
    pub(crate) fn max_body(&self, admitted: &Admitted) -> usize {
        if admitted.0.is_some() { self.max_client_body } else { self.max_body }
    }

    /// Counts the commands of a request.
    pub(crate) fn count_commands(
        &self,
        admitted: &Admitted,
        number: usize,
    ) -> Result<(), Exceeded> {
        let Some(Counted { source, .. }) = &admitted.0 else { return Ok(()) };
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let Some(number) = NonZeroU32::new(number) else { return Ok(()) };
        self.clients.commands(&source.client, number).map_err(Exceeded::Client)?;
        self.addresses.commands(&source.address, number).map_err(Exceeded::Client)
    }

    /// Counts `number` commands as `weight` in all, for their many names or words.
    /// [`Self::count_commands`] has counted each of them once before.
    pub(crate) fn count_weight(
        &self,
        admitted: &Admitted,
        number: usize,
        weight: usize,
    ) -> Result<(), Failure> {
        if admitted.0.is_some() && weight > self.max_commands {
            return Err(Failure::TooMany);
        }
        Ok(self.count_commands(admitted, weight.saturating_sub(number))?)
    }

    /// Counts the names that a request uses against the limit of a day.
    pub(crate) fn count_names(
        &self,
        admitted: &Admitted,
        names: &[String],
    ) -> Result<(), Exceeded> {
        let Some(Counted { source, .. }) = &admitted.0 else { return Ok(()) };
        let now = Instant::now();
        let address = (&self.address_names, &source.address);
        self.client_names.take(&source.client, address, names, now).map_err(Exceeded::Client)
    }

    /// Counts the bytes of a body as commands, before the body is parsed.
    pub(crate) fn count_body(&self, admitted: &Admitted, bytes: usize) -> Result<(), Exceeded> {
        self.count_commands(admitted, bytes / BYTES_PER_COMMAND)
    }

    /// Reserves memory for a chunk of a body, and adds it to `reserved`, the memory of its earlier
    /// chunks.
    pub(crate) fn reserve_body(
        &self,
        admitted: &Admitted,
        reserved: &mut Option<PoolPermit>,
        bytes: usize,
    ) -> Result<(), Exceeded> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let permit = self.bodies.try_acquire(admitted.shares(), |share| &share.bodies, bytes)?;
        match reserved {
            Some(reserved) => reserved.join(permit),
            None => *reserved = Some(permit),
        }
        Ok(())
    }

    /// Reserves one of the streams.
    pub(crate) fn reserve_stream(&self, admitted: &Admitted) -> Result<PoolPermit, Exceeded> {
        self.streams.try_acquire(admitted.shares(), |share| &share.streams, 1)
    }

    /// Reserves one of the connections that wait for replicas.
    pub(crate) fn reserve_wait(&self, admitted: &Admitted) -> Result<PoolPermit, Exceeded> {
        self.waits.try_acquire(admitted.shares(), |share| &share.waits, 1)
    }

    /// Drops the records of clients and addresses whose limits are unused again.
    pub(crate) fn remove_idle(&self) {
        self.clients.remove_idle();
        self.addresses.remove_idle();
        self.health_checks.remove_idle();
        self.unauthenticated.remove_idle();
        self.client_names.remove_idle(Instant::now());
        self.address_names.remove_idle(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::iter::from_fn;
    use std::net::Ipv4Addr;

    use super::*;
    use crate::config::RedisSource;
    use crate::tokens::Tokens;

    const FULL: Option<Exceeded> = Some(Exceeded::Client(RETRY_SOON));

    pub(super) fn limits(set: impl FnOnce(&mut Config)) -> Limits {
        let tokens = Tokens::new(["token-of-sixteen-characters"]).unwrap();
        let mut config = Config::new(RedisSource::Private, tokens);
        set(&mut config);
        Limits::new(&config)
    }

    /// A source for the client `client` at the address with this number.
    pub(super) fn at(client: &str, address: u8) -> Option<Source> {
        let address = Ipv4Addr::new(10, 0, 0, address).into();
        Some(Source { client: ClientKey::new(client), address })
    }

    fn body(limits: &Limits, admitted: &Admitted, bytes: usize) -> Result<PoolPermit, Exceeded> {
        let mut permit = None;
        limits.reserve_body(admitted, &mut permit, bytes)?;
        Ok(permit.unwrap())
    }

    #[test]
    fn a_client_has_a_share_of_its_own_and_returns_it() {
        let limits = limits(|config| (config.client_streams, config.client_concurrency) = (1, 2));
        let first = limits.admit(at("a", 1)).unwrap();
        let stream = limits.reserve_stream(&first).unwrap();
        drop(first);
        limits.remove_idle();
        let second = limits.admit(at("a", 1)).unwrap();
        assert_eq!(limits.reserve_stream(&second).err(), FULL);
        let third = limits.admit(at("a", 2)).unwrap();
        assert_eq!(limits.admit(at("a", 2)).err(), FULL);
        assert!(limits.reserve_stream(&limits.admit(at("b", 1)).unwrap()).is_ok());
        assert!(limits.admit(None).is_ok_and(|full| limits.reserve_stream(&full).is_ok()));
        drop((third, stream));
        assert!(limits.reserve_stream(&second).is_ok() && limits.admit(at("a", 1)).is_ok());
    }

    #[test]
    fn clients_at_one_address_share_the_limits_of_the_address() {
        let limits = limits(|config| {
            config.client_streams = 1;
            config.address_clients = NonZeroU32::new(2).unwrap();
        });
        let open = |client: &str, address| {
            limits.admit(at(client, address)).and_then(|request| limits.reserve_stream(&request))
        };
        let streams = [open("a", 1).unwrap(), open("b", 1).unwrap()];
        assert_eq!(open("c", 1).err(), FULL);
        let elsewhere = open("c", 2).unwrap();
        drop(streams);
        // A request refused for its address used nothing of the client's share.
        drop(elsewhere);
        assert!(open("c", 1).is_ok());
    }

    #[test]
    fn one_client_and_one_address_have_a_part_of_the_memory_for_bodies() {
        let limits = limits(|config| (config.body_memory, config.body_limit) = (1600, 10));
        let [a, b] = ["a", "b"].map(|name| limits.admit(at(name, 1)).unwrap());
        let full = limits.admit(None).unwrap();
        let mut taken = Some(body(&limits, &a, 40).unwrap());
        limits.reserve_body(&a, &mut taken, 60).unwrap();
        assert_eq!(limits.reserve_body(&a, &mut taken, 1).err(), FULL);
        let others: Vec<PoolPermit> = (0..7)
            .map(|number| limits.admit(at(&number.to_string(), 1)).unwrap())
            .map(|request| body(&limits, &request, 100).unwrap())
            .collect();
        assert_eq!(body(&limits, &b, 1).err(), FULL);
        let rest = body(&limits, &full, 800).unwrap();
        let elsewhere = limits.admit(at("b", 2)).unwrap();
        let gateway = Some(Exceeded::Gateway(RETRY_SOON));
        assert_eq!(body(&limits, &elsewhere, 1).err(), gateway);
        drop((taken, others, rest));
        assert!(body(&limits, &b, 100).is_ok());
    }

    #[test]
    fn clients_with_scoped_tokens_leave_a_part_to_full_ones() {
        let limits = limits(|config| {
            (config.body_memory, config.body_limit, config.client_streams) = (1600, 10, 50);
            (config.stream_limit, config.wait_limit) = (80, 64);
        });
        let full = limits.admit(None).unwrap();
        let requests: Vec<Admitted> =
            (0..40).map(|name| limits.admit(at(&name.to_string(), name)).unwrap()).collect();
        let all = |take: &dyn Fn(&Admitted) -> Result<PoolPermit, Exceeded>| -> Vec<PoolPermit> {
            requests.iter().flat_map(|request| from_fn(|| take(request).ok())).collect()
        };
        let bodies = all(&|request| body(&limits, request, 100));
        let [streams, waits] = [
            all(&|request| limits.reserve_stream(request)),
            all(&|request| limits.reserve_wait(request)),
        ];
        assert_eq!([bodies.len(), streams.len(), waits.len()], [12, 60, 48]);
        assert_eq!(limits.reserve_wait(&requests[39]).err(), Some(Exceeded::Gateway(RETRY_SOON)));
        let rest = body(&limits, &full, 400).unwrap();
        assert!(body(&limits, &full, 1).is_err());
        let others: Vec<PoolPermit> = from_fn(|| limits.reserve_stream(&full).ok()).collect();
        assert_eq!(others.len(), 20);
        assert_eq!(
            from_fn(|| limits.reserve_wait(&full).ok()).collect::<Vec<PoolPermit>>().len(),
            16
        );
        drop((bodies, streams, waits, rest));
        assert!(body(&limits, &full, 1600).is_ok());
    }

    #[test]
    fn waits_of_one_client_and_of_one_address_leave_some_to_other_clients() {
        let limits = limits(|config| config.wait_limit = 64);
        let waits = |client: &str, address, number| -> Vec<PoolPermit> {
            let request = limits.admit(at(client, address)).unwrap();
            (0..number).map_while(|_| limits.reserve_wait(&request).ok()).collect()
        };
        let permits: Vec<Vec<PoolPermit>> =
            (0..9).map(|name| waits(&name.to_string(), 1, 9)).collect();
        let lengths: Vec<usize> = permits.iter().map(Vec::len).collect();
        assert_eq!(lengths, [4, 4, 4, 4, 4, 4, 4, 4, 0]);
        assert_eq!(waits("8", 2, 9).len(), 4);
    }

    #[test]
    fn commands_with_many_names_count_as_more() {
        let limits = limits(|config| config.client_commands = NonZeroU32::MIN);
        let admitted = limits.admit(at("a", 1)).unwrap();
        assert!(matches!(limits.count_weight(&admitted, 10, 1001), Err(Failure::TooMany)));
        assert_eq!(limits.count_commands(&admitted, 500), Ok(()));
        assert!(limits.count_weight(&admitted, 500, 1000).is_ok());
        assert!(matches!(limits.count_weight(&admitted, 500, 1000), Err(Failure::Exceeded(_))));
        assert!(limits.count_weight(&limits.admit(None).unwrap(), 1, 9999).is_ok());
    }

    #[test]
    fn a_whole_pipeline_is_let_in_however_small_the_rate() {
        let limits = limits(|config| config.client_commands = NonZeroU32::MIN);
        let admitted = limits.admit(at("a", 1)).unwrap();
        assert_eq!(limits.count_body(&admitted, 1 << 20), Ok(()));
        assert_eq!(limits.count_commands(&admitted, 1000), Ok(()));
        assert!(limits.count_commands(&admitted, 1000).is_err());
        assert!(limits.count_body(&admitted, 1 << 20).is_err());
        assert_eq!(limits.count_body(&admitted, 1000), Ok(()));
    }
}
