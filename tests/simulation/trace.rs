//! The readable trace of a schedule: what happened, with times.

/// The lines of one schedule.
#[derive(Default)]
pub(crate) struct Trace(Vec<(u64, String)>);

impl Trace {
    pub(crate) fn add(&mut self, now: u64, line: String) {
        self.0.push((now, line));
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(now, line)| format!("{:>12.3} ms  {line}", *now as f64 / 1000.0))
    }
}
