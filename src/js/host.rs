//! The host of the npm package.

use crate::host::{Host, JsHost, NoEntropy};
use edgelatch_proto::time::Instant;

/// The event loop of the JavaScript runtime. The package never drops the future of an acquisition:
/// a signal cancels it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NpmHost;

impl Host for NpmHost {
    const UNDOES_DROPPED: bool = false;

    fn now(&self) -> Instant {
        JsHost.now()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        JsHost.sleep_until(deadline)
    }

    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        JsHost.entropy()
    }
}
