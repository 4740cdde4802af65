//! The screen of `watch`, as a function of the snapshots and the time.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, List, Paragraph, Row, Table};

use super::change::Changes;
use super::{News, Snapshot};
use crate::clock;
use crate::status::{Lock, State};

/// The number of changes that are kept.
const CHANGES_MAX: usize = 100;

/// The content of the screen.
pub(super) struct Screen {
    snapshot: Snapshot,
    /// The longest remaining time of the present hold: a full gauge.
    lease: Duration,
    failure: Option<String>,
    changes: Changes,
    lines: VecDeque<String>,
}

impl Screen {
    pub(super) fn new(first: Snapshot) -> Self {
        let (changes, lines) = (Changes::default(), VecDeque::new());
        let mut screen =
            Self { snapshot: first.clone(), lease: Duration::ZERO, failure: None, changes, lines };
        screen.on_news(Ok(first));
        screen
    }

    /// Handles the result of a query.
    pub(super) fn on_news(&mut self, news: News) {
        let snapshot = match news {
            Ok(snapshot) => snapshot,
            Err(failure) => {
                self.changes.on_failure();
                self.failure = Some(failure.message);
                return;
            }
        };
        self.failure = None;
        if let Some(line) = self.changes.on_snapshot(&snapshot) {
            self.lines.push_front(line);
            self.lines.truncate(CHANGES_MAX);
        }
        let token = |snapshot: &Snapshot| lock(snapshot).and_then(|lock| lock.fencing_token);
        if token(&snapshot) != token(&self.snapshot) {
            self.lease = Duration::ZERO;
        }
        let remaining = lock(&snapshot).and_then(|lock| lock.remaining()).unwrap_or_default();
        self.lease = self.lease.max(remaining);
        self.snapshot = snapshot;
    }

    /// Draws the screen at this time.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, now: SystemTime) {
        let title = format!(" {} ", self.snapshot.status.name);
        let mut block = Block::bordered().title(title.bold()).title_bottom(" q: quit ");
        if let Some(failure) = &self.failure {
            block = block.title_bottom(Line::from(format!(" {failure} ")).red().right_aligned());
        }
        let area = frame.area();
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let rows = self.rows(now);
        let height = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        let heights = [Constraint::Length(height), Constraint::Length(1), Constraint::Length(1)];
        let heights = heights.into_iter().chain([Constraint::Min(0)]);
        let [facts, gauge, head, changes] = Layout::vertical(heights).areas(inner);
        let rows = rows.into_iter().map(|(name, value)| Row::new([name.to_owned(), value]));
        frame.render_widget(Table::new(rows, [Constraint::Length(16), Constraint::Min(0)]), facts);
        if let Some(gauge_widget) = self.gauge(now) {
            frame.render_widget(gauge_widget, gauge);
        }
        frame.render_widget(Paragraph::new("Changes, newest first").dim(), head);
        frame.render_widget(List::new(self.lines.iter().map(String::as_str)), changes);
    }

    fn rows(&self, now: SystemTime) -> Vec<(&'static str, String)> {
        let number = |number: Option<u64>| number.map_or_else(none, |number| number.to_string());
        match self.snapshot.status.state {
            State::Lock(lock) | State::Fair(lock) => {
                let is = if lock.held { "held" } else { "free" };
                let mut rows = vec![
                    ("State", is.to_owned()),
                    (if lock.held { "Holder since" } else { "Last grant" }, since(&lock, now)),
                    ("Remaining", self.remaining(now).map_or_else(none, clock::seconds)),
                    ("Fencing token", number(lock.fencing_token)),
                ];
                if self.snapshot.queue.is_some() {
                    rows.push(("Queue", number(self.snapshot.queue)));
                }
                rows
            }
            State::Semaphore(state) => vec![
                ("Available", state.available.to_string()),
                ("Held", state.held.to_string()),
                ("Holders", state.holders.to_string()),
            ],
            State::Latch(latch) => vec![
                ("State", if latch.open { "open" } else { "closed" }.to_owned()),
                ("Count", latch.count.to_string()),
            ],
        }
    }

    /// The remaining time of the hold, which passes between two queries.
    fn remaining(&self, now: SystemTime) -> Option<Duration> {
        let passed = now.duration_since(self.snapshot.at).unwrap_or_default();
        lock(&self.snapshot)?.remaining().map(|time| time.saturating_sub(passed))
    }

    fn gauge(&self, now: SystemTime) -> Option<Gauge<'static>> {
        let remaining = self.remaining(now)?;
        let full = self.lease.max(Duration::from_millis(1));
        let ratio = remaining.div_duration_f64(full).clamp(0.0, 1.0);
        let color = if ratio < 0.25 { Color::Red } else { Color::Green };
        Some(
            Gauge::default()
                .gauge_style(Style::new().fg(color))
                .ratio(ratio)
                .label(clock::seconds(remaining)),
        )
    }
}

/// The lock of a snapshot.
const fn lock(snapshot: &Snapshot) -> Option<&Lock> {
    match &snapshot.status.state {
        State::Lock(lock) | State::Fair(lock) => Some(lock),
        State::Semaphore(_) | State::Latch(_) => None,
    }
}

fn since(lock: &Lock, now: SystemTime) -> String {
    let Some(granted) = lock.granted_at() else { return none() };
    let ago = clock::seconds(now.duration_since(granted).unwrap_or_default());
    format!("{} ({ago})", clock::text(granted))
}

fn none() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::change::tests::{HELD, snapshot};
    use super::*;
    use crate::exit::{Exit, Failure};

    /// The lines of the screen at this second.
    fn lines(screen: &Screen, second: u64) -> Vec<String> {
        let now = snapshot(second, HELD, None).at;
        let mut terminal = Terminal::new(TestBackend::new(60, 12)).unwrap();
        terminal.draw(|frame| screen.draw(frame, now)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let row = |y| (0..60).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..12).map(row).collect()
    }

    fn has(lines: &[String], words: [&str; 2]) -> bool {
        lines.iter().any(|line| words.iter().all(|word| line.contains(word)))
    }

    #[test]
    fn the_remaining_time_passes_between_two_queries() {
        let screen = Screen::new(snapshot(0, HELD, Some(3)));
        let shown = lines(&screen, 12);
        assert!(shown[0].contains("backup"), "{shown:#?}");
        for words in [
            ["State", "held"],
            ["Holder since", "2025-11-26T01:00:00Z (12s)"],
            ["Remaining", "18s"],
            ["Fencing token", "1764118800000000"],
            ["Queue", "3"],
        ] {
            assert!(has(&shown, words), "{words:?}: {shown:#?}");
        }
        assert!(has(&lines(&screen, 60), ["Remaining", "0s"]));
    }

    #[test]
    fn a_release_is_listed_before_the_grant() {
        let mut screen = Screen::new(snapshot(0, HELD, None));
        let free = Lock { held: false, hold_count: 0, remaining_ms: None, ..HELD };
        screen.on_news(Ok(snapshot(5, free, None)));
        let shown = lines(&screen, 5);
        assert!(has(&shown, ["State", "free"]) && has(&shown, ["Last grant", "01:00:00Z"]));
        let at = |text: &str| shown.iter().position(|line| line.contains(text)).unwrap();
        assert!(at("01:00:05Z free") < at("01:00:00Z held"), "{shown:#?}");
    }

    #[test]
    fn a_failure_is_shown_until_the_next_snapshot() {
        let mut screen = Screen::new(snapshot(0, HELD, None));
        screen.on_news(Err(Failure::new(Exit::Unreachable, "no gateway")));
        assert!(lines(&screen, 1)[11].contains("no gateway"));
        screen.on_news(Ok(snapshot(2, HELD, None)));
        assert!(!lines(&screen, 2)[11].contains("no gateway"));
    }
}
