//! One round: a scoped token, other clients that hold objects, and requests whose effects are
//! checked one by one.

use std::collections::BTreeMap;

use edgelatch_proto::protocol::scope::{ObjectKind, Right, touched};
use fastrand::Rng;
use serde_json::{Value, json};

use super::call::{Call, Template, Values, new_owner, new_request};
use super::checker::Checker;
use super::env::{Env, Snapshot};
use super::library::Library;
use super::messages::check;
use super::mutation::{Material, command, mutate};
use super::scope::{KINDS, Scope};
use super::tally::Tally;
use super::victims::Victims;
use crate::scopes::KEY;
use crate::support::{TOKEN, TestClient};

/// The most calls of one request.
const CALLS_MAX: usize = 16;

pub(crate) struct Round<'a> {
    env: &'a mut Env,
    library: &'a mut Library,
    scope: Scope,
    client: TestClient,
    token: String,
    victims: Victims,
    names: Vec<String>,
    seen: Snapshot,
    since: u64,
    /// The calls that had an effect, the newest last.
    done: Vec<Origin>,
    sent: Vec<(Call, Origin)>,
}

/// The names, script and values of a call.
#[derive(Clone)]
struct Origin {
    /// The name of its object, and a second name for calls on two.
    names: [String; 2],
    script: &'static str,
    /// The number of names that it uses.
    width: usize,
    values: Values,
}

/// A call in a request.
struct Sent {
    script: &'static str,
    origin: Origin,
    command: Value,
    right: Option<Right>,
}

impl<'a> Round<'a> {
    pub(crate) async fn begin(
        env: &'a mut Env,
        library: &'a mut Library,
        number: usize,
        rng: &mut Rng,
    ) -> Self {
        env.flush().await;
        let scope = Scope::random(rng, env.has_tags, number);
        let victims = Victims::settle(env, &scope, library, rng).await;
        Self::with(env, library, scope, victims).await
    }

    /// Begins a round with a token of this scope, beside these other clients.
    pub(crate) async fn with(
        env: &'a mut Env,
        library: &'a mut Library,
        scope: Scope,
        victims: Victims,
    ) -> Self {
        let token = scope.token();
        // Those of the other clients.
        env.messages().await;
        let seen = env.look().await;
        let mut names: Vec<String> = KINDS.into_iter().flat_map(|kind| scope.names(kind)).collect();
        names.extend(victims.foreign.iter().cloned());
        let (client, since) = (env.client(&token), seen.now);
        let (done, sent) = (Vec::new(), Vec::new());
        Self { env, library, scope, client, token, victims, names, seen, since, done, sent }
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Sends requests. Returns an error for the first rule that one of them broke, with the
    /// request.
    pub(crate) async fn play(
        &mut self,
        rng: &mut Rng,
        tally: &mut Tally,
        requests: u64,
    ) -> Result<(), String> {
        for _ in 0..requests {
            let count = if rng.bool() { 1 } else { rng.usize(1..=CALLS_MAX) };
            let calls: Vec<Sent> = (0..count).map(|_| self.any(rng, tally)).collect();
            let result = self.send(&calls, rng, tally).await;
            let body: Vec<_> = calls.iter().map(|sent| &sent.command).collect();
            let text: String = json!(body).to_string().chars().take(4000).collect();
            result.map_err(|broken| format!("{broken}\nafter {text}"))?;
        }
        Ok(())
    }

    async fn send(
        &mut self,
        calls: &[Sent],
        rng: &mut Rng,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let commands: Vec<&Value> = calls.iter().map(|sent| &sent.command).collect();
        let (path, body) = match (calls, rng.u8(..20)) {
            (_, 0) => ("/multi-exec", json!(commands)),
            ([one], 1..10) => ("/", one.command.clone()),
            _ => ("/pipeline", json!(commands)),
        };
        let (status, text) = self.client.post(path, &body.to_string()).await;
        tally.requests += 1;
        let answers = self.answers(path, status, &text, calls.len())?;
        for (sent, answer) in calls.iter().zip(&answers) {
            let result = &answer["result"];
            let token = result[1].as_str().and_then(|token| token.parse().ok());
            let is_query =
                ["_inspect", "_newest", "_queue"].iter().any(|end| sent.script.ends_with(end));
            if result[0] == 1 && !is_query {
                let mut origin = sent.origin.clone();
                origin.values.token =
                    token.filter(|token| *token > self.since).unwrap_or(origin.values.token);
                self.done.push(origin);
            }
            tally.note(sent.script, sent.right, answer);
        }
        let now = self.env.look().await;
        let checker = Checker { scope: &self.scope, victims: &self.victims, since: self.since };
        checker.check(&self.seen, &now)?;
        self.seen = now;
        for message in self.env.messages().await {
            let purpose = check(&message, &self.scope).map_err(|broken| broken.to_string())?;
            tally.count_message(purpose);
        }
        Ok(())
    }

    /// Returns the answer to each call, or an error if the response is not one that the gateway may
    /// send.
    fn answers(
        &self,
        path: &str,
        status: u16,
        text: &str,
        count: usize,
    ) -> Result<Vec<Value>, String> {
        let wrong = |what: &str| Err(format!("{what}: {path} {status} {text}"));
        let secrets = [TOKEN, KEY, "PASSWORD", &self.token, &self.victims.mark];
        if secrets.iter().any(|secret| text.contains(*secret)) {
            return wrong("a secret was sent");
        }
        if !matches!(status, 200 | 400 | 403 | 413) {
            return wrong("no such status was expected");
        }
        let Ok(body) = serde_json::from_str::<Value>(text) else { return wrong("no JSON") };
        let is_answer = |answer: &Value| {
            let fields = answer
                .as_object()
                .map(|fields| fields.keys().map(String::as_str).collect::<Vec<_>>());
            fields.is_some_and(|fields| {
                fields == ["result"] || fields == ["error"] && answer["error"].is_string()
            })
        };
        let answers = match body {
            Value::Array(all) if path == "/pipeline" && all.len() == count => all,
            one => vec![one],
        };
        if !answers.iter().all(is_answer) || path == "/multi-exec" && status != 403 {
            return wrong("not the form of an answer");
        }
        if text.contains("attempt to") || text.contains("script tried") {
            return wrong("a script failed half-way");
        }
        Ok(answers)
    }

    /// Returns a call: a legal one or an earlier one, with up to three mutations.
    fn any(&mut self, rng: &mut Rng, tally: &Tally) -> Sent {
        let (mut call, origin) = match rng.u8(..20) {
            0 if !self.sent.is_empty() => self.sent[rng.usize(..self.sent.len())].clone(),
            1..12 if !self.done.is_empty() => self.next(rng, tally),
            _ => self.legal(rng),
        };
        let mutations = [0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3][rng.usize(..11)];
        if mutations > 0 {
            let keys: Vec<String> = self.seen.keys.keys().cloned().collect();
            let material = Material { names: &self.names, keys: &keys };
            (0..mutations).for_each(|_| mutate(&mut call, &material, rng));
        }
        let keys: Vec<&str> = call.keys.iter().map(String::as_str).collect();
        let args: Vec<&str> = call.args.iter().map(String::as_str).collect();
        let right = touched(call.script, &keys, &args).and_then(|touched| touched.right);
        let command = command(&call, rng);
        self.sent.push((call.clone(), origin.clone()));
        Sent { script: call.script.name, origin, command, right }
    }

    /// Returns a call that the library makes after a successful one: of the same owner, and often
    /// of the same request.
    fn next(&mut self, rng: &mut Rng, tally: &Tally) -> (Call, Origin) {
        let newest = self.done.len().saturating_sub(12);
        let mut origin = self.done[rng.usize(newest..self.done.len())].clone();
        let templates = self.library.about(&origin.names[0], &origin.names[1]);
        let follows = |template: &&Template| {
            let script = template.script().name;
            let is_renewal = origin.script == "write_acquire" && script == "lock_renew";
            let is_related = script == "cancel" || family(script) == family(origin.script);
            template.width == origin.width && (is_renewal || is_related)
        };
        if rng.bool() {
            origin.values.request = new_request(rng);
        }
        // Prefers scripts that have rarely run.
        let rare = tally.rare(1);
        let is_rare = |template: &&Template| rare.contains(&template.script().name);
        let of_rare = choose(templates.iter().filter(follows).filter(is_rare), rng);
        let of_all = choose(templates.iter().filter(follows), rng);
        let template = of_rare.or(of_all).unwrap_or(&templates[0]);
        origin.script = template.script().name;
        (template.fill(&origin.values), origin)
    }

    /// Returns a call that the library makes.
    fn legal(&mut self, rng: &mut Rng) -> (Call, Origin) {
        // Prefers locks, which have most of the scripts.
        let is_lock = rng.u8(..3) == 0;
        let kind = if is_lock { ObjectKind::Lock } else { KINDS[rng.usize(..KINDS.len())] };
        let mut names = self.scope.names(kind);
        if names.is_empty() {
            names.clone_from(&self.names);
        }
        // Other clients hold objects under the other names.
        let free: Vec<&String> = names.iter().filter(|name| name.contains("free")).collect();
        let name = match free.as_slice() {
            [_, ..] if rng.u8(..3) > 0 => free[rng.usize(..free.len())].clone(),
            _ => names[rng.usize(..names.len())].clone(),
        };
        let names = [name.clone(), partner(&name, &names)];
        let templates = self.library.about(&names[0], &names[1]);
        let is_of_kind = |template: &&Template| template.kind.is_none_or(|of| of == kind);
        let template = choose(templates.iter().filter(is_of_kind), rng).unwrap_or(&templates[0]);
        let values = self.values(rng);
        let call = template.fill(&values);
        let (script, width) = (template.script().name, template.width);
        (call, Origin { names, script, width, values })
    }

    fn values(&self, rng: &mut Rng) -> Values {
        let (clock, max) = (self.seen.now, self.scope.max_lease);
        let ahead = [0, 0, 30_000_000, 59_000_000, 70_000_000][rng.usize(..5)];
        let later = [1000, 60_000, 60_000, 60_000, 690_000, 900_000][rng.usize(..6)];
        Values {
            owners: [(); 3].map(|()| new_owner(rng)),
            request: new_request(rng),
            lease: [100, max, max, max, max, max, max, max + 1][rng.usize(..8)],
            not_after: (rng.u8(..6) > 0).then(|| clock + later),
            token: clock * 1000 + ahead,
            peer_skew: if rng.u8(..10) == 0 { 1000 } else { self.scope.peer_skew },
        }
    }
}

/// Returns the part of a script's name that all scripts of one kind of object share.
fn family(script: &str) -> &str {
    match script.split('_').next() {
        Some("read" | "write") => "rw",
        other => other.unwrap_or_default(),
    }
}

/// Chooses a template. Each script has the same probability.
fn choose<'t>(
    templates: impl Iterator<Item = &'t Template>,
    rng: &mut Rng,
) -> Option<&'t Template> {
    let mut scripts: BTreeMap<&str, Vec<&Template>> = BTreeMap::new();
    for template in templates {
        scripts.entry(template.script().name).or_default().push(template);
    }
    let all = scripts.values().nth(rng.usize(..scripts.len().max(1)))?;
    all.get(rng.usize(..all.len())).copied()
}

/// Returns a second name for a call on two names: if possible one in the same slot, and one that no
/// other client holds.
fn partner(name: &str, names: &[String]) -> String {
    let is_tagged = |name: &str| name.contains('{');
    let mut others: Vec<&String> = names.iter().filter(|other| *other != name).collect();
    others.sort_by_key(|other| (is_tagged(other) != is_tagged(name), !other.contains("free")));
    others.first().map_or_else(|| "app:other".to_owned(), |other| (*other).clone())
}
