//! `edgelatch semaphore`: creates a semaphore, and changes its permits.

use crate::args::{Kind, SemaphoreCommand, StatusArgs};
use crate::exit::{Exit, Failure};
use crate::print_line;
use crate::status;
use crate::target::Client;

/// Runs a command about a semaphore.
pub(crate) async fn run(client: &Client, command: SemaphoreCommand) -> Result<u8, Failure> {
    match command {
        SemaphoreCommand::Set { name, permits, life } => {
            if !client.semaphore(&name)?.try_set_permits(permits, life).await? {
                let message = format!(
                    "the semaphore {name:?} exists already; change it with `semaphore add`"
                );
                return Err(Failure::new(Exit::Exists, message));
            }
            Ok(0)
        }
        SemaphoreCommand::Add { name, permits } => {
            let available = client.semaphore(&name)?.add_permits(permits).await?;
            print_line(&available.to_string())?;
            Ok(0)
        }
        SemaphoreCommand::Show { json, name } => {
            status::run(client, StatusArgs { kind: Kind::Semaphore, json, names: vec![name] }).await
        }
    }
}
