//! The objects that the commands are about.

use edgelatch::Lock;
use edgelatch::client;
use edgelatch::client::FairSettings;
use edgelatch::error::InvalidOption;
use edgelatch::host::TokioHost;
use edgelatch::transport::Reqwest;

use crate::args::HeldKind;

/// The client of the commands.
pub(crate) type Client = client::Client<Reqwest, TokioHost>;
/// A lock, or permits of a semaphore.
pub(crate) type Held = Lock<Reqwest, TokioHost>;
/// A lease of a lock or of permits.
pub(crate) type Lease = client::Lease<Reqwest, TokioHost>;

/// Returns the lock, or the permits, of this name.
pub(crate) fn held(
    client: &Client,
    kind: HeldKind,
    permits: u32,
    name: &str,
) -> Result<Held, InvalidOption> {
    match kind {
        HeldKind::Lock => client.lock(name),
        HeldKind::Fair => client.fair_lock(name, FairSettings::default()),
        HeldKind::Semaphore => client.semaphore(name)?.permits(permits),
    }
}
