//! The Rust program of README.md: the test compares them.
use edgelatch::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let lock = client.lock("nightly-report")?;
    lock.run(async |lease| println!("token {}", lease.token().as_u64())).await?;
    Ok(())
}
