//! `EDGELATCH_LOG`: a line on stderr for each step of a lock's life.

use std::{env, fmt, io};

use tracing::{Event, Subscriber};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, layer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::exit::{Exit, Failure};

const VARIABLE: &str = "EDGELATCH_LOG";

/// Starts the log if the variable names a level. Only the client's own steps are logged.
pub(crate) fn start() -> Result<(), Failure> {
    let Some(level) = env::var(VARIABLE).ok().filter(|level| !level.is_empty()) else {
        return Ok(());
    };
    let level: LevelFilter = level.parse().map_err(|_| {
        let accepted = "expected error, warn, info, debug, trace or off";
        Failure::new(Exit::Usage, format!("`{VARIABLE}` is not acceptable: {accepted}"))
    })?;
    let lines = layer().event_format(Line).with_writer(io::stderr);
    let steps = lines.with_filter(Targets::new().with_target("edgelatch", level));
    tracing::subscriber::set_global_default(Registry::default().with(steps))
        .map_err(|error| Failure::new(Exit::Internal, error.to_string()))
}

/// The format of a line: time, level and message. The fields of spans would make it long.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        cx: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut line)?;
        write!(line, " {} edgelatch: ", event.metadata().level())?;
        cx.format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}
