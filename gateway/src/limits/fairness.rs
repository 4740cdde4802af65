//! A request beyond a limit of its client uses nothing of the limits of other clients.

use std::num::NonZeroU32;

use super::tests::{at, limits};

#[test]
fn a_client_beyond_its_rate_uses_nothing_of_its_address_s_rate() {
    let limits = limits(|config| {
        config.client_requests = NonZeroU32::MIN;
        config.address_clients = NonZeroU32::new(2).unwrap();
    });
    let sends =
        |client: &str, number| (0..number).filter(|_| limits.admit(at(client, 1)).is_ok()).count();
    // A burst of one client is 4 requests, one of the address 8.
    let passed = sends("a", 1000);
    assert!((4..1000).contains(&passed), "{passed}");
    assert_eq!(sends("b", 4), 4);
}
