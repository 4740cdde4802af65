//! Several calls in one request, and the outcome of each: `pipelines` of
//! `tests/vectors/upstash.json`.

use edgelatch_proto::error::FailureKind;
use edgelatch_proto::protocol::calls::UserScript;
use edgelatch_proto::protocol::exchange::{Exchange, Step};
use edgelatch_proto::protocol::gateway::{Gateway, GatewayCapabilities, PipelineOutcome, Request};
use edgelatch_proto::protocol::script::ScriptCall;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::vectors::{gateway, outcome_json, response, vectors};
use test_support::calls;
use test_support::random::cases;

/// The calls that are sent singly after a failed pipeline, before the next attempt at one.
const SINGLE_CALLS: usize = 64;

/// Three calls with different request ids.
fn three_calls() -> [ScriptCall; 3] {
    [1, 2, 3].map(|number| calls::lock("job").0.inspect(calls::request(number), None))
}

fn echo(number: u64) -> String {
    format!("{number:016x}")
}

/// Starts the exchange of these calls; returns it with its request.
fn begin_exchanges<'a>(
    gateway: &'a Gateway,
    calls: &'a [ScriptCall],
    capabilities: &GatewayCapabilities,
) -> (Vec<Exchange>, Vec<Request>, Request) {
    let begin = |call: &ScriptCall| match Exchange::new(gateway, call.clone(), capabilities) {
        (exchange, Step::Send(request)) => (exchange, request),
        (_, done) => panic!("{done:?}"),
    };
    let (exchanges, requests): (Vec<_>, Vec<_>) = calls.iter().map(begin).unzip();
    let joined = Request::several(&requests[0], requests[1..].iter());
    (exchanges, requests, joined)
}

fn verb(request: &Request) -> Value {
    let words: Vec<String> = serde_json::from_str(&request.body).unwrap();
    words[0].clone().into()
}

/// How many of the next hundred calls are sent singly before one may share a request.
fn count_single_calls(capabilities: &mut GatewayCapabilities) -> usize {
    (0..100).take_while(|_| !capabilities.shares()).count()
}

/// S15.
#[test]
fn every_pipeline_response_has_the_outcomes_of_its_vector() {
    for vector in vectors("pipelines") {
        let name = vector["name"].as_str().unwrap();
        let (gateway, calls, mut capabilities) =
            (gateway(&Value::Null), three_calls(), GatewayCapabilities::default());
        let (mut exchanges, requests, _) = begin_exchanges(&gateway, &calls, &capabilities);
        let mut body = vector["body"].as_str().unwrap().to_owned();
        for number in 1..=3 {
            body = body.replace(&format!("${number}"), &echo(number));
        }
        let status = u16::try_from(vector["status"].as_u64().unwrap()).unwrap();
        let answers = match capabilities.pipeline_outcome(Ok(response(status, body)), 3) {
            PipelineOutcome::Each(each) => each.into_iter().map(Ok).collect(),
            PipelineOutcome::All(answer) => vec![answer; 3],
            PipelineOutcome::Unsupported => Vec::new(),
        };
        let ends: Vec<Value> = if answers.is_empty() {
            requests.iter().map(verb).collect()
        } else {
            let pairs = exchanges.iter_mut().zip(answers);
            let end = |(exchange, answer): (&mut Exchange, _)| match exchange.answered(
                &gateway,
                answer,
                &mut capabilities,
            ) {
                Step::Done(end) => outcome_json(&end),
                Step::Send(next) => verb(&next),
            };
            pairs.map(end).collect()
        };
        assert_eq!(Value::from(ends), vector["ends"], "{name}");
        let next = match count_single_calls(&mut capabilities) {
            0 => "together",
            SINGLE_CALLS => "singly for a while",
            _ => "singly",
        };
        assert_eq!(next, vector["next"], "{name}");
    }
}

#[test]
fn several_calls_are_sent_as_a_list_of_their_commands() {
    let config = json!({ "url": "https://gateway.example/redis" });
    let (gateway, calls, mut capabilities) =
        (gateway(&config), three_calls(), GatewayCapabilities::default());
    capabilities.pipeline_outcome(Ok(response(404, "")), 3);
    let (_, requests, joined) = begin_exchanges(&gateway, &calls, &capabilities);
    assert_eq!(joined.url, "https://gateway.example/redis/pipeline");
    assert_eq!(joined.authorization.as_deref(), Some("Bearer tok"));
    assert_eq!(joined.content_type, "application/json");
    let bodies: Vec<&str> = requests.iter().map(|request| request.body.as_str()).collect();
    assert_eq!(joined.body, format!("[{}]", bodies.join(",")));
}

#[test]
fn the_newest_sync_token_goes_with_several_and_theirs_is_kept() {
    let (gateway, calls, mut capabilities) =
        (gateway(&Value::Null), three_calls(), GatewayCapabilities::default());
    let (mut exchanges, mut requests, _) = begin_exchanges(&gateway, &calls, &capabilities);
    requests[0].sync_token = Some("old".into());
    requests[2].sync_token = Some("new".into());
    let joined = Request::several(&requests[0], requests[1..].iter());
    assert_eq!(joined.sync_token.as_deref(), Some("new"));
    let mut answer = response(200, r#"[{"error":"ERR"},{"error":"ERR"},{"error":"ERR"}]"#);
    answer.sync_token = Some("newest".into());
    let PipelineOutcome::Each(answers) = capabilities.pipeline_outcome(Ok(answer), 3) else {
        panic!()
    };
    for (exchange, answer) in exchanges.iter_mut().zip(answers) {
        assert!(matches!(
            exchange.answered(&gateway, Ok(answer), &mut capabilities),
            Step::Done(_)
        ));
    }
    let (_, _, next) = begin_exchanges(&gateway, &calls, &capabilities);
    assert_eq!(next.sync_token.as_deref(), Some("newest"));
}

#[test]
fn calls_that_may_share_a_request() {
    let [inspect, ..] = three_calls();
    let own = UserScript::new("return 1", vec![], vec![]).unwrap();
    let eval = calls::lock("job").0.eval(calls::owner(1), calls::token(7), &own).unwrap();
    let eval = eval.call(calls::request(9), calls::bound(1, 0));
    let (upstash, webdis) = (gateway(&Value::Null), Gateway::webdis("https://x.example", ""));
    assert!(upstash.may_share(&inspect));
    assert!(!webdis.unwrap().may_share(&inspect), "it takes one command at a time");
    assert!(
        !upstash.may_share(&calls::replicated(7, "job", 1)),
        "its `WAIT` applies to no other call"
    );
    assert!(!upstash.may_share(&eval), "its result may be as large as a whole response");
}

#[test]
fn a_transport_error_applies_to_each_call_and_may_count_against_pipelines() {
    for (kind, doubts) in [
        (FailureKind::NotSent, false),
        (FailureKind::Broken, true),
        (FailureKind::Redirected, true),
        (FailureKind::TooLarge, true),
    ] {
        let mut capabilities = GatewayCapabilities::default();
        let PipelineOutcome::All(Err(reported)) = capabilities.pipeline_outcome(Err(kind), 2)
        else {
            panic!("{kind}")
        };
        assert_eq!((reported, count_single_calls(&mut capabilities) > 0), (kind, doubts));
        let good = || Ok(response(200, "[{},{}]"));
        let mut capabilities = GatewayCapabilities::default();
        assert!(matches!(capabilities.pipeline_outcome(good(), 2), PipelineOutcome::Each(_)));
        capabilities.pipeline_outcome(Err(kind), 2);
        capabilities.unanswered();
        let too_large = kind == FailureKind::TooLarge;
        assert_eq!(
            count_single_calls(&mut capabilities),
            if too_large { SINGLE_CALLS } else { 0 },
            "it has worked: {kind}"
        );
    }
}

#[test]
fn pipelines_that_fail_twice_are_not_tried_a_third_time() {
    let mut capabilities = GatewayCapabilities::default();
    capabilities.unanswered();
    // Other requests that were in flight at the same time do not count again.
    capabilities.unanswered();
    assert_eq!(count_single_calls(&mut capabilities), SINGLE_CALLS);
    capabilities.unanswered();
    assert_eq!(count_single_calls(&mut capabilities), 100);
    capabilities.pipeline_outcome(Ok(response(200, "[{},{}]")), 2);
    assert_eq!(
        count_single_calls(&mut capabilities),
        0,
        "one that was under way has worked after all"
    );
}

proptest! {
    #![proptest_config(cases(256))]

    /// S17.
    #[test]
    fn an_arbitrary_body_gives_each_call_a_reply_or_all_the_same_error(
        status in 100..1000_u16,
        body in "[\\[\\]{}\":,a-z0-9 \\\\-]{0,60}",
        count in 2..5_usize,
    ) {
        let mut capabilities = GatewayCapabilities::default();
        let reads = serde_json::from_str::<Vec<Value>>(&body).is_ok_and(|all| all.len() == count);
        match capabilities.pipeline_outcome(Ok(response(status, body)), count) {
            PipelineOutcome::Each(each) => {
                prop_assert!(reads && each.len() == count);
                for answer in each {
                    prop_assert!(serde_json::from_slice::<Value>(&answer.body).is_ok());
                }
            }
            PipelineOutcome::All(_) | PipelineOutcome::Unsupported => {}
        }
    }
}
