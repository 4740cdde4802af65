//! Calls that are executed at most once.

use super::{ERROR, Out, Run, ScriptModel, Value, out};

impl ScriptModel {
    /// `parts/once.lua`: executes the change unless it was executed or cancelled, or its bound has
    /// passed.
    pub(super) fn once(
        &mut self,
        run: &Run<'_>,
        act: impl FnOnce(&mut Self) -> (i64, String),
    ) -> Out {
        if let Some(record) = self.text(&run.keys[0]) {
            return recorded(&record);
        }
        let Some(not_after) = run.not_after else { return out(-4, "0", 0) };
        if run.is_late() {
            return out(if run.now > not_after + window(run) { -5 } else { -1 }, "0", 0);
        }
        let (code, value) = act(self);
        if code == ERROR {
            return (code, value, 0);
        }
        self.put_record(run, format!("{code}:{value}"));
        (code, value, 0)
    }

    pub(super) fn cancel(&mut self, run: &Run<'_>) -> Out {
        match (self.text(&run.keys[0]), run.not_after) {
            (Some(record), _) if record != "x" => return recorded(&record),
            (None, None) => return out(-4, "0", 0),
            (None, Some(not_after)) if run.now > not_after + window(run) => {
                return out(-5, "0", 0);
            }
            _ => {}
        }
        self.put_record(run, "x".into());
        out(-2, "0", 0)
    }

    fn put_record(&mut self, run: &Run<'_>, record: String) {
        let ends_at = run.now + run.record_ttl(0) + window(run);
        self.put(&run.keys[0], Value::Text(record), Some(ends_at));
    }
}

fn recorded(record: &str) -> Out {
    match record.split_once(':') {
        Some((code, value)) => out(code.parse().unwrap(), value, 1),
        None => out(-2, "0", 0),
    }
}

fn window(run: &Run<'_>) -> u64 {
    run.args[4].parse().unwrap()
}
