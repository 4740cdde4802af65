//! Draws a table as bars: plain SVG that is readable on white and on black.

use std::fmt::Write as _;

use super::figures::short;
use super::table::{Row, Table};

const WIDTH: usize = 820;
/// The left end of the bars, and the length of the longest.
const LEFT: usize = 230;
const LONGEST: f64 = 480.0;
const BAR: usize = 11;
const STEP: usize = 14;
const GAP: usize = 12;
/// The ratio of the largest to the smallest figure from which the scale is logarithmic.
const WIDE: f64 = 40.0;
/// The colours of edgelatch's columns, in order. These and the next ones are visible on white and
/// on black.
const OURS: [&str; 3] = ["#3b82f6", "#06a3b7", "#8b5cf6"];
/// The colours of other libraries, the same in all charts, by the beginning of their column's name.
const THEIRS: [(&str, &str); 5] = [
    ("@upstash/lock", "#f97316"),
    ("webdis", "#f97316"),
    ("redlock", "#22a06b"),
    ("redis-semaphore", "#d946a0"),
    ("Redisson", "#a8801b"),
];
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}\
                     .unit{font-weight:600}.dim{fill:#656d76}\
                     @media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}}";

/// Returns the whole file.
pub(super) fn draw(table: &Table) -> String {
    let mut chart = Chart { body: String::new(), y: 24 };
    chart.text(8, "title", &table.title);
    chart.y += 8;
    let colours = colours(&table.columns);
    chart.legend(&table.columns, &colours);
    let mut units: Vec<&str> = Vec::new();
    for row in &table.rows {
        if !units.contains(&row.unit.as_str()) {
            units.push(&row.unit);
        }
    }
    for unit in units {
        let rows: Vec<&Row> = table.rows.iter().filter(|row| row.unit == unit).collect();
        chart.panel(unit, &rows, &colours);
    }
    let height = chart.y + GAP;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\"><title>{}</title><style>{STYLE}</style>\n{}</svg>\n",
        escaped(&table.title),
        chart.body
    )
}

struct Chart {
    body: String,
    /// The vertical position of the present line.
    y: usize,
}

impl Chart {
    fn text(&mut self, x: usize, class: &str, text: &str) {
        let (y, text) = (self.y, escaped(text));
        self.push(&format!("<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{text}</text>"));
    }

    fn legend(&mut self, columns: &[String], colours: &[&str]) {
        let mut x = 8;
        self.y += 18;
        for (column, colour) in columns.iter().zip(colours) {
            // The approximate width of the letters in most fonts.
            let wide = 24 + column.chars().count() * 7;
            if x + wide > WIDTH {
                x = 8;
                self.y += 18;
            }
            let top = self.y - BAR + 1;
            self.push(&format!(
                "<rect x=\"{x}\" y=\"{top}\" width=\"{BAR}\" height=\"{BAR}\" rx=\"2\" fill=\"{colour}\"/>"
            ));
            self.text(x + BAR + 4, "", column);
            x += wide;
        }
        self.y += GAP;
    }

    /// Draws the rows of one unit, on one scale.
    fn panel(&mut self, unit: &str, rows: &[&Row], colours: &[&str]) {
        let scale = Scale::of(rows);
        self.y += 20;
        let note = if scale.is_of_powers() { " (logarithmic)" } else { "" };
        self.text(8, "unit", &format!("{unit}{note}"));
        for row in rows {
            self.y += GAP;
            let top = self.y;
            for (cell, colour) in row.cells.iter().zip(colours) {
                let (y, long) = (self.y, scale.length(*cell));
                self.push(&format!(
                    "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{long:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{colour}\"/>"
                ));
                self.y += BAR - 1;
                self.text(LEFT + long as usize + 6, "dim", &short(*cell));
                self.y += STEP + 1 - BAR;
            }
            let end = self.y;
            self.y = top + (end - top) / 2 + 2;
            self.text(8, "", &row.what);
            self.y = end;
        }
        self.y += GAP;
    }

    fn push(&mut self, element: &str) {
        // Writing to a `String` does not fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// The scale of bars.
struct Scale {
    /// The left end of a logarithmic scale, below the smallest figure; `None` for a linear scale,
    /// which begins at zero.
    least: Option<f64>,
    most: f64,
}

impl Scale {
    fn of(rows: &[&Row]) -> Self {
        let cells = || rows.iter().flat_map(|row| &row.cells).copied().filter(|cell| *cell > 0.0);
        let (least, most) = (cells().fold(f64::INFINITY, f64::min), cells().fold(0.0, f64::max));
        let is_wide = most / least > WIDE;
        Self { least: is_wide.then(|| 10_f64.powf(least.log10().floor())), most }
    }

    fn is_of_powers(&self) -> bool {
        self.least.is_some()
    }

    fn length(&self, value: f64) -> f64 {
        let part = match self.least {
            _ if value <= 0.0 => 0.0,
            Some(least) => (value / least).log10() / (self.most / least).log10(),
            None => value / self.most,
        };
        (part * LONGEST).max(1.0)
    }
}

fn colours(columns: &[String]) -> Vec<&'static str> {
    let mut ours = OURS.iter().cycle();
    let known = |column: &String| THEIRS.iter().find(|(name, _)| column.starts_with(name));
    let colour = |column| known(column).map(|(_, colour)| colour).or_else(|| ours.next());
    columns.iter().filter_map(colour).copied().collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_bar_for_each_figure() {
        let mut table = Table::new("id", "A < B", String::new(), &["ours", "theirs"]);
        table.row("one", "ms", vec![1.0, 2.0]);
        table.row("two", "kB", vec![1.0, 4000.0]);
        let svg = draw(&table);
        // And one for each column in the legend.
        assert_eq!(svg.matches("<rect").count(), 6);
        assert_eq!(svg.matches("class=\"unit\"").count(), 2);
        assert!(svg.contains("A &lt; B") && svg.contains("4\u{202f}000"));
    }

    #[test]
    fn the_largest_figure_has_the_longest_bar_on_both_scales() {
        let mut table = Table::new("id", "", String::new(), &["ours", "theirs"]);
        table.row("near", "ms", vec![10.0, 20.0]);
        table.row("far", "ms", vec![0.5, 900.0]);
        let (near, far) = (Scale::of(&[&table.rows[0]]), Scale::of(&[&table.rows[1]]));
        assert!(!near.is_of_powers() && far.is_of_powers());
        assert_eq!((near.length(20.0), near.length(10.0)), (LONGEST, LONGEST / 2.0));
        assert_eq!(far.length(900.0), LONGEST);
        assert_eq!(near.length(0.0), 1.0);
    }
}
