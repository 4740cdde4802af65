//! The Rust program of README.md: the test compares them.
use edgelatch::{Client, Gateway};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("UPSTASH_REDIS_REST_URL")?;
    let token = std::env::var("UPSTASH_REDIS_REST_TOKEN")?;
    let client = Client::connect(Gateway::upstash(&url, &token)?);
    let lock = client.lock("nightly-report")?;
    lock.run(async |lease| println!("token {}", lease.token().as_u64())).await?;
    Ok(())
}
