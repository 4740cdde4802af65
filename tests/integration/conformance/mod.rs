//! The conformance suites for transports and hosts, run with those of a native program.

mod host;
mod peer;
mod transport;

use edgelatch::host::{Host as _, TokioHost};
use edgelatch::transport::Reqwest;

use self::peer::Peer;
use self::transport::Surroundings;
use test_support::fake_host::{DullHost, FakeHost};

#[tokio::test]
async fn reqwest_is_a_transport() {
    let peer = Peer::start().await;
    let surroundings = Surroundings {
        peer: &peer.url(),
        unreachable: &Peer::unreachable_address().await,
        reports_unsent: true,
        adds: &["accept", "content-length", "host"],
    };
    transport::check(&Reqwest::new(), &surroundings).await;
    transport::check(&&Reqwest::default(), &surroundings).await;
}

#[tokio::test]
async fn a_client_of_one_s_own_is_a_transport_too() {
    let peer = Peer::start().await;
    let surroundings = Surroundings {
        peer: &peer.url(),
        unreachable: &Peer::unreachable_address().await,
        reports_unsent: true,
        adds: &["accept", "content-length", "host", "user-agent"],
    };
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .user_agent("a program")
        .build()
        .unwrap();
    transport::check(&Reqwest::with_client(client), &surroundings).await;
}

#[tokio::test]
async fn tokio_is_a_host() {
    host::check(&TokioHost::new(), |_| ()).await;
    host::check(&&TokioHost::default(), |_| ()).await;
}

#[tokio::test(start_paused = true)]
async fn tokio_with_a_paused_clock_is_a_host() {
    host::check(&TokioHost::new(), |_| ()).await;
}

#[tokio::test]
async fn the_host_of_the_tests_is_a_host() {
    let host = FakeHost::new();
    host::check(&host, |time| host.pass(time)).await;
}

#[test]
fn a_host_without_entropy_returns_an_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _context = runtime.enter();
    let error = DullHost(TokioHost::new()).entropy().unwrap_err();
    assert_eq!(error.to_string(), "the host has no entropy");
}
