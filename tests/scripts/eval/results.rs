//! The data that a caller's script can access, and the encoding of its result.

use edgelatch_proto::protocol::calls::UserScript;
use edgelatch_proto::protocol::gateway::{Gateway, GatewayCapabilities};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::Bound;
use serde_json::{Value, json};

use super::held::{acquire, bound_in_ten_minutes};
use test_support::calls::{begin_exchange, bound, lock, owner, request, token};
use test_support::redis::Redis;

/// The lock `job`, which owner 1 holds.
struct HeldLock {
    redis: Redis,
    bound: Bound,
    fencing: u64,
    /// The number of the last request.
    requests: u64,
}

impl HeldLock {
    async fn start() -> Self {
        let redis = Redis::start().await;
        let bound = bound_in_ten_minutes(&redis).await;
        let fencing = acquire(&redis, &lock("job"), bound).await;
        Self { redis, bound, fencing, requests: 1 }
    }

    async fn try_run(&mut self, script: &str) -> redis::RedisResult<Reply> {
        self.requests += 1;
        let keys = vec!["{job}:a".into(), "{job}:b".into()];
        let own = UserScript::new(script, keys, vec!["x".into(), "é".into()]).unwrap();
        let call = lock("job").0.eval(owner(1), token(self.fencing), &own).unwrap();
        let call = call.call(request(self.requests), self.bound);
        let cells = self.redis.cells(&call).await?;
        let reply = Reply::read(&cells, call.request).unwrap();
        // A repeated call returns the recorded result, with 1 as `ms`.
        let again = self.redis.run(&call).await;
        assert_eq!((again.code, &again.value, again.ms), (reply.code, &reply.value, 1), "{script}");
        Ok(reply)
    }

    async fn run(&mut self, script: &str) -> Reply {
        self.try_run(script).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    async fn result(&mut self, script: &str) -> Value {
        let reply = self.run(script).await;
        assert_eq!(reply.code, Code::Done, "{script}: {}", reply.value);
        serde_json::from_str(&reply.value)
            .unwrap_or_else(|error| panic!("{}: {error}", reply.value))
    }

    async fn failure(&mut self, script: &str) -> String {
        let reply = self.run(script).await;
        assert_eq!(reply.code, Code::ScriptFailed, "{script}: {}", reply.value);
        reply.value
    }
}

#[tokio::test]
async fn a_script_sees_its_own_keys_and_arguments_and_no_name_of_the_library() {
    let mut held = HeldLock::start().await;
    let seen = held.result("return {KEYS,ARGV,#KEYS,#ARGV}").await;
    assert_eq!(seen, json!([["{job}:a", "{job}:b"], ["x", "é"], 2, 2]));
    for name in ["own", "now", "out", "rid", "bound", "json", "note", "window", "record", "t"] {
        let failure = held.failure(&format!("return {name}")).await;
        assert!(failure.contains("nonexistent global variable"), "{name}: {failure}");
        let failure = held.failure(&format!("{name}=1")).await;
        assert!(failure.contains("readonly") || failure.contains("global"), "{name}: {failure}");
    }
    assert_eq!(held.result("KEYS,ARGV=nil,nil local out,now=1,2 return out+now").await, json!(3));
}

#[tokio::test]
async fn results_of_all_types_are_returned_as_json() {
    let mut held = HeldLock::start().await;
    // The scripts run in this order: one sets the key that the next one reads.
    for (script, wanted) in [
        ("local nothing", json!(null)),
        ("return nil", json!(null)),
        ("return false", json!(null)),
        ("return true", json!(true)),
        ("return 42", json!(42)),
        ("return -0.25", json!(-0.25)),
        ("return 9007199254740991", json!(9_007_199_254_740_991_u64)),
        ("return 1700000000000001", json!(1_700_000_000_000_001_u64)),
        ("return 2^60", json!(2_f64.powi(60))),
        ("return 'a\"b\\\\c\\n\\0\\127é/'", json!("a\"b\\c\n\0\u{7f}é/")),
        ("return {}", json!([])),
        ("return {1,{2,{}},'x',false}", json!([1, [2, []], "x", null])),
        ("return {1,nil,3}", json!([1, null, 3])),
        ("return {a=1,b={c='d'},[7.5]=true}", json!({"a": 1, "b": {"c": "d"}, "7.5": true})),
        ("return redis.call('SET',KEYS[1],ARGV[1])", json!("OK")),
        ("return redis.call('GET',KEYS[1])", json!("x")),
        ("return redis.call('GET',KEYS[2])", json!(null)),
        ("return redis.call('HGETALL',KEYS[2])", json!([])),
        ("return {redis.call('INCR',KEYS[2]),redis.call('INCR',KEYS[2])}", json!([1, 2])),
        ("return cjson.decode('{\"n\":null,\"l\":[1.5]}')", json!({"n": null, "l": [1.5]})),
        ("return 7 -- with a comment at the end", json!(7)),
    ] {
        assert_eq!(held.result(script).await, wanted, "{script}");
    }
}

#[tokio::test]
async fn an_error_of_a_script_is_reported_and_the_script_not_repeated() {
    let mut held = HeldLock::start().await;
    for (script, failure) in [
        ("error('mine')", "mine"),
        ("error({err='CODE and more'})", "CODE and more"),
        ("error()", "nil"),
        ("return redis.error_reply('NO not that')", "NO not that"),
        ("return {1,redis.error_reply('NO deep down')}", "NO deep down"),
        ("return redis.call('INCR',KEYS[1],1)", "Wrong number of args"),
        ("return redis.call('GET')", "Wrong number of args"),
        ("return function() end", "no JSON: function"),
        ("return 0/0", "no JSON: number"),
        ("return math.huge", "no JSON: number"),
        ("return '\\255'", "not UTF-8"),
        ("return {a='\\195'}", "not UTF-8"),
        ("return '\\195 \\169'", "not UTF-8"),
        ("local t={} t[1]=t return t", "stack overflow"),
        // 30,001 bytes with the quotes of its JSON.
        ("return string.rep('x',29999)", "larger than 30000 bytes"),
        ("error('\\1\\200'..string.rep('y',5000),0)", "??yyyy"),
    ] {
        let text = held.failure(script).await;
        assert!(text.contains(failure), "{script}: {text}");
        assert!(text.len() <= 1_000 && text.is_ascii());
    }
    // The script's effects before its failure stay, and are not repeated.
    held.failure("redis.call('INCR',KEYS[2]) error('later')").await;
    assert_eq!(held.result("return redis.call('GET',KEYS[2])").await, json!("1"));
    assert_eq!(held.result("return string.rep('x',29998)").await.as_str().unwrap().len(), 29_998);
}

#[tokio::test]
async fn a_text_that_is_no_lua_is_refused_before_anything_runs() {
    let mut held = HeldLock::start().await;
    let before = held.redis.dump().await;
    // Two of the texts end the function that they are the body of, and begin another block.
    for script in [
        "return +",
        "end",
        "if true then",
        "--[[ open",
        "return 1 end function x(",
        "return 1 end redis.call('SET',KEYS[1],'x') do",
    ] {
        let error = held.try_run(script).await.unwrap_err();
        assert!(error.to_string().contains("compiling"), "{script}: {error}");
    }
    assert!(before.keys().eq(held.redis.dump().await.keys()));
}

#[tokio::test]
async fn a_copy_that_finds_only_the_first_record_has_an_unknown_outcome() {
    let held = HeldLock::start().await;
    let own = UserScript::new("return 1", Vec::new(), Vec::new()).unwrap();
    let call = lock("job").0.eval(owner(1), token(held.fencing), &own).unwrap();
    let call = call.call(request(9), held.bound);
    // The record that is written before the caller's script runs, and replaced by the result: the
    // code of `Unknown`, and no value.
    held.redis.query::<String>(&["SET", &call.keys()[0], "-5:0", "PX", "60000"]).await;
    assert_eq!(held.redis.run(&call).await.code, Code::Unknown);
}

#[tokio::test]
async fn a_caller_s_script_is_sent_by_eval_and_to_upstash_with_the_line_for_key_locking() {
    let (plain, key_locking) = (false, true);
    let own = UserScript::new("return 'mine'", Vec::new(), Vec::new()).unwrap();
    let call = lock("job").0.eval(owner(1), token(7), &own).unwrap();
    let call = call.call(request(9), bound(1, 0));
    assert_eq!((call.sha1(plain), call.sha1(key_locking)), (None, None));
    // It makes Upstash lock only the declared keys; any other Redis rejects it.
    let line = "#!lua flags=allow-key-locking\n";
    assert_eq!(call.source(key_locking), line.to_owned() + &call.source(plain));
    let function = "local own=(function() return function(KEYS,ARGV) return 'mine'\nend end)()\n";
    assert!(call.source(plain).starts_with(function));
    for (url, begins) in [("https://a.example", ""), ("https://a.upstash.io", line)] {
        let gateway = Gateway::upstash(url, "token").unwrap();
        let (_, request) = begin_exchange(&gateway, &call, &GatewayCapabilities::default());
        let words: Vec<String> = serde_json::from_str(&request.body).unwrap();
        assert_eq!(words[0], "EVAL");
        assert_eq!(words[1], begins.to_owned() + &call.source(plain));
        assert_eq!(words[2], call.keys().len().to_string());
    }
}
