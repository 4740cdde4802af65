//! Tables of figures: measurements create them, and they are recorded and printed.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::figures::{rounded, short};

/// The figures of a run, and its machine.
pub(super) struct Results {
    /// The environment of the figures, by name.
    pub(super) machine: Vec<(String, String)>,
    pub(super) tables: Vec<Table>,
}

/// A question, and the figures of several subjects.
pub(super) struct Table {
    /// A short name, for names of files.
    pub(super) id: String,
    pub(super) title: String,
    /// The method, and the number of measurements.
    pub(super) how: String,
    /// The subjects: first edgelatch, with which the others are compared.
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// One figure of each subject.
pub(super) struct Row {
    pub(super) what: String,
    pub(super) unit: String,
    pub(super) cells: Vec<f64>,
}

impl Table {
    /// Creates a table without rows.
    pub(super) fn new(id: &str, title: &str, how: String, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { id: id.to_owned(), title: title.to_owned(), how, columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, what: &str, unit: &str, cells: Vec<f64>) {
        let cells = cells.into_iter().map(rounded).collect();
        self.rows.push(Row { what: what.to_owned(), unit: unit.to_owned(), cells });
    }

    /// Returns a description of each row that lacks figures.
    pub(super) fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        if self.rows.is_empty() || self.columns.is_empty() {
            gaps.push("it has no figures".to_owned());
        }
        for row in &self.rows {
            let figures = row.cells.iter().filter(|cell| cell.is_finite()).count();
            if figures != self.columns.len() {
                gaps.push(format!("{}: {figures} figures of {}", row.what, self.columns.len()));
            }
        }
        gaps
    }

    /// Prints the table to the terminal.
    pub(super) fn print(&self) {
        println!("\n{}\n({})\n", self.title, self.how);
        let label = |row: &Row| format!("{} ({})", row.what, row.unit);
        let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or_default();
        let first = longest(&mut self.rows.iter().map(|row| label(row).chars().count()));
        let widths: Vec<usize> =
            self.columns.iter().map(|column| column.chars().count().max(9)).collect();
        let line = |name: &str, cells: Vec<String>| {
            let cells: Vec<String> =
                cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
            println!("  {name:<first$}  {}", cells.join("  "));
        };
        line("", self.columns.clone());
        for row in &self.rows {
            line(&label(row), row.cells.iter().map(|cell| short(*cell)).collect());
        }
    }
}

impl Results {
    /// Returns the table for the results file.
    pub(super) fn to_json(&self) -> String {
        let rows = |table: &Table| -> Vec<Value> {
            let row = |row: &Row| json!({ "what": row.what, "unit": row.unit, "cells": row.cells });
            table.rows.iter().map(row).collect()
        };
        let table = |table: &Table| {
            json!({
                "id": table.id,
                "title": table.title,
                "how": table.how,
                "columns": table.columns,
                "rows": rows(table),
            })
        };
        let machine: Vec<Value> = self.machine.iter().map(|(name, is)| json!([name, is])).collect();
        let tables: Vec<Value> = self.tables.iter().map(table).collect();
        format!("{:#}\n", json!({ "machine": machine, "tables": tables }))
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    pub(super) fn from_json(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).context("the results are no JSON")?;
        let machine = list(&value, "machine")?.iter().map(|pair| {
            let word = |place| pair.get(place).and_then(Value::as_str).map(str::to_owned);
            word(0).zip(word(1)).context("the machine is not readable")
        });
        Ok(Self {
            machine: machine.collect::<Result<_>>()?,
            tables: list(&value, "tables")?.iter().map(table).collect::<Result<_>>()?,
        })
    }
}

fn table(value: &Value) -> Result<Table> {
    let columns = list(value, "columns")?.iter();
    Ok(Table {
        id: text(value, "id")?,
        title: text(value, "title")?,
        how: text(value, "how")?,
        columns: columns.filter_map(Value::as_str).map(str::to_owned).collect(),
        rows: list(value, "rows")?.iter().map(row).collect::<Result<_>>()?,
    })
}

fn row(value: &Value) -> Result<Row> {
    let cells = list(value, "cells")?.iter().map(|cell| cell.as_f64().unwrap_or(f64::NAN));
    Ok(Row { what: text(value, "what")?, unit: text(value, "unit")?, cells: cells.collect() })
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v Vec<Value>> {
    value.get(key).and_then(Value::as_array).with_context(|| format!("results without {key}"))
}

fn text(value: &Value, key: &str) -> Result<String> {
    let text = value.get(key).and_then(Value::as_str).map(str::to_owned);
    text.with_context(|| format!("results without {key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new("id", "A title", "once".to_owned(), &["ours", "theirs"])
    }

    #[test]
    fn a_table_without_a_figure_somewhere_has_gaps() {
        let mut table = table();
        assert_eq!(table.gaps().len(), 1);
        table.row("full", "ms", vec![1.0, 2.0]);
        assert!(table.gaps().is_empty());
        table.row("short", "ms", vec![1.0]);
        table.row("none", "ms", vec![f64::NAN, 1.0]);
        assert_eq!(table.gaps().len(), 2);
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let mut table = table();
        table.row("a", "ms", vec![0.123_456, 1234.5]);
        let machine = vec![("CPU".to_owned(), "one".to_owned())];
        let text = Results { machine, tables: vec![table] }.to_json();
        assert_eq!(Results::from_json(&text).unwrap().to_json(), text);
    }
}
