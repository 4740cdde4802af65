//! The scripts of the semaphore.

use super::holds::Kind;
use super::holds::{NEVER, rules};
use super::{Out, Run, ScriptModel, Value, out};

/// How many holds are examined one by one.
const LISTED_MAX: usize = 500;

impl ScriptModel {
    pub(super) fn semaphore(&mut self, script: &str, run: &Run<'_>) -> Out {
        let args = run.args;
        match script {
            "semaphore_acquire" => {
                let member = format!("{}|{}", args[8], args[4]);
                self.take(run, &[member], args[8].parse().unwrap(), 0, Kind::Semaphore)
            }
            "semaphore_release" => {
                self.give_back(run, &[format!("{}|{}", args[5], args[4])], args[5].parse().unwrap())
            }
            "semaphore_renew" => self.renew(run, &[format!("{}|{}", args[7], args[6])], 0),
            "semaphore_change" => self.recorded(run, |model| model.semaphore_change(run)),
            "semaphore_inspect" => self.semaphore_inspect(run),
            other => panic!("the model does not know `{other}`"),
        }
    }

    fn semaphore_change(&mut self, run: &Run<'_>) -> (i64, String) {
        let (op, key, there) = (run.args[5].as_str(), &run.keys[1], self.number(&run.keys[1]));
        let permits = || run.args[6].parse::<i64>().unwrap();
        if there.is_none() && !self.leaves_out(rules::NOT_THERE) {
            self.delete(&run.keys[2]);
        }
        let value = match op {
            "clear" => {
                let freed = self.clear(run, Kind::Semaphore);
                return (i64::from(freed > 0), freed.to_string());
            }
            "drain" => {
                let now = i64::try_from(run.now).unwrap();
                let available = self.evict(run, now, Kind::Semaphore).unwrap_or(0);
                if available != 0 {
                    self.add_to(key, -available);
                }
                available
            }
            "set" if there.is_none() => {
                let life = run.args[7].parse::<u64>().ok();
                self.put(key, Value::Text(permits().to_string()), life.map(|ms| run.now + ms));
                permits()
            }
            "add" | "addx" if op == "add" || there.is_some() => {
                match self.change(run, permits(), Kind::Semaphore) {
                    Ok(available) => available,
                    Err(limit) => return limit,
                }
            }
            _ => return (0, there.unwrap_or(0).to_string()),
        };
        if op != "drain" {
            self.publish_available(run, permits(), value);
        }
        (1, value.to_string())
    }

    fn semaphore_inspect(&self, run: &Run<'_>) -> Out {
        let now = i64::try_from(run.now).unwrap();
        let there = self.number(&run.keys[1]);
        let members = self.members(&run.keys[2]);
        let mut listed: Vec<_> = members.iter().map(|(member, at)| (*at, member)).collect();
        listed.sort_unstable();
        listed.truncate(LISTED_MAX);
        let permits = |over: bool| -> i64 {
            let of = listed.iter().filter(|(at, _)| (*at <= now) == over);
            of.map(|(_, member)| Kind::Semaphore.weight(member)).sum()
        };
        let holds = members.values().filter(|at| **at > now).count();
        let mine = self.score(&run.keys[2], &format!("{}|{}", run.args[5], run.args[4]));
        let token = self.text(&run.keys[0]).unwrap_or_else(|| "0".into());
        let available = there.map_or(0, |available| available + permits(true));
        let value = [holds as i64, i64::from(mine.is_some()), available, permits(false)];
        let value = value.map(|number| number.to_string()).join(",");
        let left = mine.map_or(-2, |at| if at == NEVER { -1 } else { (at - now).max(0) });
        out(i64::from(there.is_some()), &format!("{token},{value}"), left)
    }
}
