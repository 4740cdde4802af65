//! The scripts of the count-down latch.

use super::{Out, Run, ScriptModel, Value, out};

impl ScriptModel {
    pub(super) fn count_down_latch(&mut self, script: &str, run: &Run<'_>) -> Out {
        match script {
            "latch_change" => self.recorded(run, |model| model.latch_change(run)),
            "latch_inspect" => {
                let count = self.number(&run.keys[0]).unwrap_or(0).max(0);
                out(i64::from(count > 0), &count.to_string(), 0)
            }
            other => panic!("the model does not know `{other}`"),
        }
    }

    fn latch_change(&mut self, run: &Run<'_>) -> (i64, String) {
        let (key, channel) = (&run.keys[1], &run.args[7]);
        let there = self.number(key);
        let count = there.unwrap_or(0).max(0);
        match (run.args[5].as_str(), count) {
            ("set", 0) => {
                self.put(key, Value::Text(run.args[6].clone()), None);
                self.publish_to_both(run, channel, "1");
                (1, run.args[6].clone())
            }
            ("set", count) => (0, count.to_string()),
            ("down", 2..) => (1, self.add_to(key, -1).to_string()),
            (op, count) => {
                self.delete(key);
                if (op, count) == ("down", 1) || op != "down" && there.is_some() {
                    self.publish_to_both(run, channel, "0");
                }
                match (op, count) {
                    ("down", 0) => (3, "0".into()),
                    ("down", _) => (1, "0".into()),
                    (_, 0) => (0, "0".into()),
                    (_, count) => (1, count.to_string()),
                }
            }
        }
    }
}
