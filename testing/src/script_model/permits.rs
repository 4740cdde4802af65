//! The scripts of the permit-expirable semaphore.

use super::holds::{Kind, NEVER, ends, raws};
use super::{Out, Run, ScriptModel, out};

impl ScriptModel {
    pub(super) fn permits(&mut self, script: &str, run: &Run<'_>) -> Out {
        let args = run.args;
        match script {
            "permits_acquire" => {
                let ids = raws(&args[9..]);
                let permits = i64::try_from(ids.len()).unwrap();
                self.take(run, &ids, permits, args[4].parse().unwrap(), Kind::Permits)
            }
            "permits_release" => self.give_back(run, &raws(&args[4..]), 1),
            "permits_renew" => self.renew(run, &raws(&args[7..]), args[6].parse().unwrap()),
            "permits_change" => self.recorded(run, |model| model.permits_change(run)),
            "permits_inspect" => self.permits_inspect(run),
            other => panic!("the model does not know `{other}`"),
        }
    }

    fn permits_change(&mut self, run: &Run<'_>) -> (i64, String) {
        let (op, there) = (run.args[5].as_str(), self.number(&run.keys[1]));
        let (number, ids) = (run.args[6].parse::<i64>().unwrap(), raws(&run.args[8..]));
        let of_all = |done: usize| (i64::from(done == ids.len()), done.to_string());
        match op {
            "free" => of_all(self.free(run, &ids, 1)),
            "lease" => {
                let skew = run.args[7].parse().unwrap();
                let held: Vec<&String> =
                    ids.iter().filter(|id| self.score(&run.keys[2], id).is_some()).collect();
                let to = ends(run, u64::try_from(number).ok(), skew);
                held.iter().for_each(|id| self.set_score(&run.keys[2], id, to));
                of_all(held.len())
            }
            "clear" => {
                let freed = self.clear(run, Kind::Permits);
                (i64::from(freed > 0), freed.to_string())
            }
            "new" if there.is_some() => (0, there.unwrap().to_string()),
            _ => {
                let held = || i64::try_from(self.members(&run.keys[2]).len()).unwrap();
                let sets = there.filter(|_| op == "set");
                let change = sets.map_or(number, |available| number - available - held());
                let available = match self.change(run, change, Kind::Permits) {
                    Ok(available) => available,
                    Err(limit) => return limit,
                };
                self.publish_available(run, change, available);
                (1, available.to_string())
            }
        }
    }

    fn permits_inspect(&self, run: &Run<'_>) -> Out {
        let skew: i64 = run.args[4].parse().unwrap();
        let now = i64::try_from(run.now).unwrap();
        let there = self.number(&run.keys[1]);
        let members = self.members(&run.keys[2]);
        let over = members.values().filter(|at| (0..=now - skew).contains(*at)).count() as i64;
        let all = members.len() as i64;
        let ends: Option<Vec<i64>> =
            raws(&run.args[5..]).iter().map(|id| members.get(id).copied()).collect();
        let first = ends.and_then(|ends| ends.into_iter().min());
        let left = first.map_or(-2, |at| if at == NEVER { -1 } else { (at - skew - now).max(0) });
        let token = self.text(&run.keys[0]).unwrap_or_else(|| "0".into());
        let (available, total) = there.map_or((0, 0), |number| (number + over, number + all));
        let mine = i64::from(first.is_some());
        let value = format!("{token},{},{mine},{available},{total}", all - over);
        out(i64::from(there.is_some()), &value, left)
    }
}
