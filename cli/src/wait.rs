//! How long to wait for a lock or a latch.

use std::time::Duration;

use edgelatch::AcquireOptions;
use indicatif::{ProgressBar, ProgressStyle};

use crate::connection;

/// The longest wait, as for [`AcquireOptions::wait`].
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The flags of a wait. They exclude each other.
#[derive(clap::Args, Clone, Copy, Debug)]
#[group(multiple = false)]
pub(crate) struct WaitArgs {
    /// How long to wait, from 1ms to 24h.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = wait)]
    wait: Duration,

    /// Does not wait.
    #[arg(short = 'n', long)]
    no_wait: bool,

    /// Waits without an end.
    #[arg(long)]
    forever: bool,
}

fn wait(text: &str) -> Result<Duration, String> {
    connection::checked(text, "1ms to 24h", |time| {
        let is_whole = time.subsec_nanos() % 1_000_000 == 0;
        (!time.is_zero() && time <= WAIT_MAX && is_whole).then_some(time)
    })
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Once,
    UpTo(Duration),
    Forever,
}

impl Wait {
    /// Adds the wait to the options of an acquisition. [`Wait::Once`] has none.
    pub(crate) const fn apply(self, options: AcquireOptions) -> AcquireOptions {
        match self {
            Self::Once => options,
            Self::UpTo(time) => options.wait(time),
            Self::Forever => options.wait_until_cancelled(),
        }
    }
}

impl From<WaitArgs> for Wait {
    fn from(args: WaitArgs) -> Self {
        match args {
            WaitArgs { no_wait: true, .. } => Self::Once,
            WaitArgs { forever: true, .. } => Self::Forever,
            WaitArgs { wait, .. } => Self::UpTo(wait),
        }
    }
}

/// A line on stderr with the time of a wait, if stderr is a terminal. Dropping the value removes
/// the line.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn show(wait: Wait, subject: &str) -> Self {
        let bar =
            if wait == Wait::Once { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        // The template is valid; otherwise the default style is good enough.
        if let Ok(style) = ProgressStyle::with_template("{spinner} waiting for {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(subject.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
