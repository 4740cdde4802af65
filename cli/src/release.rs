//! `edgelatch release --force`: ends holds of other programs.

use crate::args::{HeldKind, ReleaseArgs};
use crate::exit::Failure;
use crate::print_line;
use crate::target::{self, Client};

/// Ends the hold, and prints whether there was one.
pub(crate) async fn run(client: &Client, args: ReleaseArgs) -> Result<u8, Failure> {
    let name = &args.name;
    let was_held = match args.kind {
        HeldKind::Semaphore => client.semaphore(name)?.force_release().await?,
        kind => target::held(client, kind, 1, name)?.force_release().await?,
    };
    print_line(&format!("{name}: {}", if was_held { "released" } else { "was not held" }))?;
    Ok(0)
}
