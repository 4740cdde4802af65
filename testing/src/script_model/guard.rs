//! The scripts of guards, and scripts of callers.

use super::{ERROR, Out, Run, ScriptModel, Value, out};

impl ScriptModel {
    pub(super) fn guard_write(&mut self, run: &Run<'_>) -> Out {
        let number = |place: usize| run.args[place].parse::<u64>().unwrap();
        let (token, tag, write, kept) = (number(4), &run.args[5], number(6), number(7));
        let fence = self.text(&run.keys[0]);
        if let Some(fence) = &fence {
            let mut parts = fence.splitn(3, ':');
            let (seen, last) = (parts.next().unwrap(), parts.next().unwrap().parse().unwrap());
            let newest: u64 = seen.parse().unwrap();
            let same = token == newest;
            if token < newest || same && parts.next() != Some(tag) {
                return out(0, seen, i64::from(same));
            }
            if same && write <= last {
                return out(if write < last { -7 } else { 2 }, seen, 0);
            }
        }
        if run.is_late() {
            return out(-1, "0", 0);
        }
        let (oldest, newest) = (run.micros.saturating_sub(kept * 1000), run.micros + 60_000_000);
        if kept > 0
            && fence.is_none()
            && token < oldest
            && !self.leaves_out("an old token is refused")
        {
            return out(-8, &oldest.to_string(), 0);
        }
        if token > newest {
            return out(-9, &newest.to_string(), 0);
        }
        if self.is_no_text(&run.keys[1]) {
            return (ERROR, "WRONGTYPE the guarded key holds no string".into(), 0);
        }
        match run.args[8].as_str() {
            "set" => {
                let ends_at = run.args[10].parse::<u64>().ok().map(|ms| run.now + ms);
                self.put(&run.keys[1], Value::Text(run.args[9].clone()), ends_at);
            }
            "del" => drop(self.delete(&run.keys[1])),
            _ => {}
        }
        let left = self.pttl(&run.keys[0], run.now);
        let life =
            (kept > 0 && left != -1).then(|| (kept + 60_000).max(left.max(0).unsigned_abs()));
        let fence = Value::Text(format!("{token}:{write}:{tag}"));
        self.put(&run.keys[0], fence, life.map(|ms| run.now + ms));
        out(1, &token.to_string(), 0)
    }

    pub(super) fn guard_newest(&self, run: &Run<'_>) -> Out {
        let fence = self.text(&run.keys[0]);
        let newest = fence.as_deref().and_then(|fence| fence.split(':').next()).unwrap_or("0");
        out(i64::from(fence.is_some()), newest, self.pttl(&run.keys[0], run.now))
    }

    /// The model knows one caller's script: it increments its first key, returns the count, and
    /// fails above its first argument.
    pub(super) fn eval(&mut self, run: &Run<'_>) -> Out {
        let number = |place: usize| run.args[place].parse::<usize>().unwrap();
        let once = run.args[6] == "1";
        let window: u64 = run.args[4].parse().unwrap();
        match self.text(&run.keys[0]).filter(|_| once).as_deref().map(|text| text.split_once(':')) {
            Some(Some((code, value))) => return out(code.parse().unwrap(), value, 1),
            Some(None) => return out(-2, "0", 0),
            None => {}
        }
        let Some(not_after) = run.not_after else { return out(-4, "0", 0) };
        if run.is_late() {
            return out(if run.now > not_after + window { -5 } else { -1 }, "0", 0);
        }
        let (objects, fields) = (2 + number(9), 11 + number(10));
        let held = run.keys[2..objects].iter().all(|object| {
            let holds = |field: &String| self.field(object, field) == Some(&run.args[8]);
            run.args[11..fields].iter().all(holds)
        });
        let latch = self.text(&run.keys[1]).and_then(|latch| latch.parse::<u64>().ok());
        if latch.unwrap_or(0) < run.args[5].parse().unwrap() || !held {
            return out(-3, "0", 0);
        }
        let (counter, most) = (&run.keys[objects], number(fields));
        let count = self.text(counter).map_or(0, |count| count.parse().unwrap()) + 1;
        let ends_at = self.keys.get(counter).and_then(|entry| entry.expires_at);
        self.put(counter, Value::Text(count.to_string()), ends_at);
        let (code, value) =
            if count > most { (-11, "too many".to_owned()) } else { (1, count.to_string()) };
        if once {
            let ends_at = run.now + run.record_ttl(0) + window;
            self.put(&run.keys[0], Value::Text(format!("{code}:{value}")), Some(ends_at));
        }
        out(code, &value, 0)
    }
}
