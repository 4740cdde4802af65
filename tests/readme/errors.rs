//! The Rust program of docs/errors.md: the test compares them.
use edgelatch::error::AcquireError;
use edgelatch::{Client, Error};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    match client.lock("nightly-report")?.acquire().await {
        Ok(lease) => drop(lease.release().await?),
        Err(Error { kind: AcquireError::Busy { .. }, .. }) => {
            println!("another client writes the report")
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
