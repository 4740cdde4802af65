//! The Rust program of docs/errors.md: the test compares them.
use edgelatch::error::AcquireError;
use edgelatch::{Client, Error, Gateway};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("UPSTASH_REDIS_REST_URL")?;
    let token = std::env::var("UPSTASH_REDIS_REST_TOKEN")?;
    let client = Client::connect(Gateway::upstash(&url, &token)?);
    match client.lock("nightly-report")?.acquire().await {
        Ok(lease) => drop(lease.release().await?),
        Err(Error { kind: AcquireError::Busy { .. }, .. }) => {
            println!("another client writes the report")
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
