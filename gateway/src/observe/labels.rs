//! The labels of the metrics, and the values that each can have.

use axum::http::Method;
use prometheus_client::encoding::EncodeLabelSet;

use crate::scoped::ScopeViolation;

/// The part of the gateway that handles a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Route(pub(crate) &'static str);

impl Route {
    pub(super) const ALL: [Self; 9] = [
        Self("command"),
        Self("healthz"),
        Self("multi-exec"),
        Self("path"),
        Self("pipeline"),
        Self("preflight"),
        Self("psubscribe"),
        Self("ssubscribe"),
        Self("subscribe"),
    ];

    /// Returns the route of a request. Every other path is a command in the address.
    pub(super) fn of(method: &Method, path: &str) -> Self {
        if method == Method::OPTIONS {
            return Self("preflight");
        }
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        match first {
            "" => Self("command"),
            "healthz" if path == "/healthz" => Self("healthz"),
            "multi-exec" if path == "/multi-exec" => Self("multi-exec"),
            "pipeline" if path == "/pipeline" => Self("pipeline"),
            "psubscribe" => Self("psubscribe"),
            "ssubscribe" => Self("ssubscribe"),
            "subscribe" => Self("subscribe"),
            _ => Self("path"),
        }
    }
}

/// The kind of one round trip to Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Command,
    /// A pipeline, or a portion of it.
    Pipeline,
    Subscribe,
    Transaction,
    /// A command that waits for replicas on a connection of its own.
    Wait,
}

impl Operation {
    pub(super) const ALL: [Self; 5] =
        [Self::Command, Self::Pipeline, Self::Subscribe, Self::Transaction, Self::Wait];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Pipeline => "pipeline",
            Self::Subscribe => "subscribe",
            Self::Transaction => "transaction",
            Self::Wait => "wait",
        }
    }
}

/// The reason why a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StreamEnd {
    /// The client has left.
    Client,
    /// The scoped token has expired.
    Expired,
    /// The connection to Redis has ended.
    Redis,
    /// The gateway shuts down.
    Shutdown,
    /// The client read so slowly that the queue of its events was full.
    Slow,
}

impl StreamEnd {
    pub(super) const ALL: [Self; 5] =
        [Self::Client, Self::Expired, Self::Redis, Self::Shutdown, Self::Slow];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Expired => "expired",
            Self::Redis => "redis",
            Self::Shutdown => "shutdown",
            Self::Slow => "slow",
        }
    }
}

/// The kind of a failure; a response with a failure has it as an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FailureKind(pub(crate) &'static str);

impl FailureKind {
    pub(super) const ALL: [Self; 18] = [
        Self("bad-reply"),
        Self("body-limit"),
        Self("client-limit"),
        Self("cross-origin"),
        Self("framing"),
        Self("gateway-limit"),
        Self("method"),
        Self("pipeline-limit"),
        Self("redis-timeout"),
        Self("redis-unreachable"),
        Self("refused"),
        Self("scope"),
        Self("slow-body"),
        Self("token-claims"),
        Self("token-early"),
        Self("token-expired"),
        Self("token-long"),
        Self("token-unknown"),
    ];
}

/// The rule of a scoped token that a request broke; its response has it as an extension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Violation(pub(crate) ScopeViolation);

/// The codes of Redis' errors that have a value of their own. Scripts can make up others.
pub(super) const CODES: [&str; 15] = [
    "BUSY",
    "CLUSTERDOWN",
    "CROSSSLOT",
    "ERR",
    "EXECABORT",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "NOAUTH",
    "NOPERM",
    "NOREPLICAS",
    "NOSCRIPT",
    "OOM",
    "READONLY",
    "WRONGTYPE",
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) route: &'static str,
    pub(super) status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RouteLabel {
    pub(super) route: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabel {
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RuleLabel {
    pub(super) rule: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CodeLabel {
    pub(super) code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OperationLabel {
    pub(super) operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReasonLabel {
    pub(super) reason: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_one_of_the_routes() {
        let of = |method, path| Route::of(&method, path).0;
        for (path, route) in [
            ("/", "command"),
            ("/pipeline", "pipeline"),
            ("/multi-exec", "multi-exec"),
            ("/subscribe/a/b", "subscribe"),
            ("/psubscribe/a", "psubscribe"),
            ("/ssubscribe/a", "ssubscribe"),
            ("/healthz", "healthz"),
            ("/healthz/x", "path"),
            ("/pipeline/x", "path"),
            ("/get/secret", "path"),
        ] {
            assert_eq!(of(Method::POST, path), route, "{path}");
            assert!(Route::ALL.contains(&Route(route)));
        }
        assert_eq!(of(Method::OPTIONS, "/pipeline"), "preflight");
    }
}
