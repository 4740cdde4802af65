//! Runs the conformance suites for transports and hosts with those of a native program.

mod host;
mod peer;
mod transport;

use edgelatch::host::{Host as _, TokioHost};
use edgelatch::transport::Reqwest;

use self::peer::Peer;
use self::transport::TransportEnv;
use test_support::fake_host::{DullHost, FakeHost};

#[tokio::test]
async fn reqwest_passes_the_suite_of_transports() {
    let peer = Peer::start().await;
    let env = TransportEnv {
        peer: &peer.url(),
        unreachable: &Peer::unreachable_address().await,
        reports_unsent: true,
        added_headers: &["accept", "content-length", "host"],
    };
    transport::check(&Reqwest::new(), &env).await;
    transport::check(&&Reqwest::default(), &env).await;
}

#[tokio::test]
async fn a_reqwest_client_of_the_caller_passes_the_suite_of_transports() {
    let peer = Peer::start().await;
    let env = TransportEnv {
        peer: &peer.url(),
        unreachable: &Peer::unreachable_address().await,
        reports_unsent: true,
        added_headers: &["accept", "content-length", "host", "user-agent"],
    };
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .user_agent("a program")
        .build()
        .unwrap();
    transport::check(&Reqwest::with_client(client), &env).await;
}

#[tokio::test]
async fn tokio_passes_the_suite_of_hosts() {
    host::check(&TokioHost::new(), |_| ()).await;
    host::check(&&TokioHost::default(), |_| ()).await;
}

#[tokio::test(start_paused = true)]
async fn tokio_with_a_paused_clock_passes_the_suite_of_hosts() {
    host::check(&TokioHost::new(), |_| ()).await;
}

#[tokio::test]
async fn the_fake_host_passes_the_suite_of_hosts() {
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
