//! What scripts publish, which their model does not say: told from what they changed.

use edgelatch::protocol::reply::Cell;

use super::gateway::Run;
use crate::script_model::ScriptModel;

/// What was there before a script ran.
#[derive(Default)]
pub(crate) struct Told {
    /// Whether each lock had this owner's field.
    fields: Vec<bool>,
    /// The number under the key, of what has one.
    number: Option<i64>,
}

type Messages = Vec<(String, String)>;

impl Told {
    pub(crate) fn before(model: &ScriptModel, run: &Run<'_>) -> Self {
        let keys = run.keys;
        match run.script.script().name {
            "lock_release" => {
                let has = |lock: &[String]| model.field(&lock[0], &run.args[4]).is_some();
                Self { fields: keys[1..].chunks(2).map(has).collect(), number: None }
            }
            "read_release" | "write_release" => {
                let fields = [model.field(&keys[1], &run.args[4]).is_some()].into();
                Self { fields, number: None }
            }
            name if is_counted(name) => Self { fields: Vec::new(), number: model.number(&keys[1]) },
            _ => Self::default(),
        }
    }

    /// The channels on which something is said, and what.
    pub(crate) fn after(&self, model: &ScriptModel, run: &Run<'_>, cells: &[Cell]) -> Messages {
        let (keys, args) = (run.keys, run.args);
        let [Cell::Int(code), ..] = cells else { return Vec::new() };
        let say = |channel: &String, message: String| [(channel.clone(), message)].into();
        match run.script.script().name {
            "lock_acquire" if *code == 1 => {
                let taken = |channel: &String| (channel.clone(), format!("{}001", args[5]));
                args.iter().skip(11).map(taken).collect()
            }
            "lock_release" => {
                let locks = keys[1..].chunks(2).zip(&self.fields).filter(|(_, had)| **had);
                locks.map(|(lock, _)| (lock[1].clone(), "0".into())).collect()
            }
            "read_release" if self.fields[0] && model.fields(&keys[1], 0).next().is_none() => {
                say(&keys[3], "0".into())
            }
            "write_release" if self.fields[0] => say(&keys[2], "1".into()),
            "write_acquire" if *code == 1 && args.len() > 10 => {
                say(&keys[4], format!("{}001", args[5]))
            }
            "group_release" if *code == 1 => say(&keys[2], "0".into()),
            "latch_change" if *code == 1 => {
                let zero = model.number(&keys[1]).is_none();
                say(&args[7], if zero { "0" } else { "1" }.into())
            }
            name if is_counted(name) => {
                let number = model.number(&keys[1]).unwrap_or(0);
                if number > self.number.unwrap_or(0) && number > 0 {
                    say(&keys[3], number.to_string())
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        }
    }
}

fn is_counted(script: &str) -> bool {
    ["semaphore_release", "semaphore_change", "permits_release", "permits_change"].contains(&script)
}
