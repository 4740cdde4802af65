//! The program of the documentation of `edgelatch::blocking`: the test compares them.
use edgelatch::blocking::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let lock = client.lock("nightly-report")?;
    lock.run(|lease| println!("token {}", lease.token().as_u64()))?;
    Ok(())
}
