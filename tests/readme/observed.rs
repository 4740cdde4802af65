//! The Rust program of docs/observability.md: the test compares them.
use edgelatch::Client;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let filter = EnvFilter::from_env("EDGELATCH_LOG");
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();

    let lock = Client::from_env()?.lock("nightly-report")?;
    lock.run(async |lease| println!("token {}", lease.token().as_u64())).await?;
    Ok(())
}
