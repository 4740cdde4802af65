//! The suites.

use super::node::Fixture::{
    Bundlers, Demo, Examples, Gateway, GatewayProgram, Jsr, Package, Peer, PlainPackage, Site,
};
use super::node::{SOAK, bundlers, package, reproducible, smoke};
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
    Binaries::new(&["edgelatch-gateway::cost", "edgelatch-gateway::gateway"]).only_in_full(
        "test(/^(cluster|lost|redirections|replicas|sentinel)::/) | test(/^attacker::.*to_a_cluster/) | test(/^attacker::ending::after_/)",
    );

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

/// All suites. Those without tools run first, then the tests in Rust, then the others; within each
/// group in this order.
pub(crate) const SUITES: &[Suite] = &[
    Suite::new("fmt", "the layout of the Rust code", Task(checks::fmt)),
    Suite::new("clippy", "lints, native and WebAssembly", Task(checks::clippy))
        .with_tools(&[WasmTarget]),
    Suite::new(
        "unit",
        "the tests beside the code, the wire format, the history checker, the rules of the repository",
        Nextest(Binaries::new(UNIT)),
    ),
    Suite::new(
        "conversations",
        "the state machines in virtual time, one conversation a test",
        Nextest(Binaries::new(&["edgelatch-tests::conversations"])),
    ),
    Suite::new(
        "scripts",
        "every script on a real Redis: Redisson's bytes, sent twice, late, out of memory",
        Nextest(SCRIPTS.outside(DIFFERENTIAL)),
    )
    .with_tools(&[Redis]),
    Suite::new(
        "differential",
        "random calls of the scripts on a real Redis and on the model in memory, compared after each; a million in a full run",
        Nextest(SCRIPTS.inside(DIFFERENTIAL).optimized()),
    )
    .with_tools(&[Redis]),
    Suite::new(
        "schedules",
        "random schedules of the scripts in virtual time, on the model in memory",
        Nextest(
            Binaries::new(&["edgelatch-tests::schedules"])
                .optimized()
                .only_in_full("test(/^schedules::(group|permits)::/) | test(/::rules::/)"),
        ),
    ),
    Suite::new(
        "simulation",
        "random schedules of the whole client in virtual time with faults; a million in a full run",
        Nextest(
            Binaries::new(&["edgelatch-tests::simulation"])
                .optimized()
                .only_in_full("test(/^(without|everything)/)"),
        ),
    ),
    Suite::new(
        "model-checking",
        "every interleaving of the protocols within bounds",
        Nextest(Binaries::new(&["edgelatch-tests::model_checking"]).optimized().only_in_full(
            "test(/::large::/) | test(/^model_checking::(objects::lock|multi::(exhaustive|simulation))::/)",
        )),
    ),
    Suite::new(
        "integration",
        "the Rust client through the real gateway, transports and hosts; in a full run on a Redis Cluster and through failovers too",
        Nextest(INTEGRATION),
    )
    .with_tools(&[Redis, Webdis]),
    Suite::new(
        "gateway",
        "the gateway in front of a real Redis, Sentinel and Cluster",
        Nextest(GATEWAY),
    )
    .with_tools(&[Redis]),
    Suite::new(
        "cli",
        "the program edgelatch in front of a real gateway: processes that are stopped, killed and cut off",
        Nextest(Binaries::new(&["edgelatch-cli::cli"])),
    )
    .with_tools(&[Redis]),
    Suite::new(
        "fault-injection",
        "a gateway that misbehaves: objects, operations and faults; Redis and the gateway killed, stopped and emptied under load",
        Nextest(
            Binaries::new(&["edgelatch-gateway::outages", "edgelatch-tests::fault_injection"])
                .only_in_full("binary(outages) | test(/::matrix::/)"),
        ),
    )
    .with_tools(&[Redis]),
    Suite::new(
        "interop",
        "the crate beside Redisson itself on the same Redis; a smoke test of each object in a quick run",
        Nextest(
            Binaries::new(&["edgelatch-tests::interop"])
                .only_in_full("not test(/refused_while/)"),
        ),
    )
    .with_tools(&[Redis, Java]),
    Suite::new(
        "interop-npm",
        "the npm package beside Redisson itself on the same Redis",
        Node("tests/interop/npm/run.mjs", &[Package, GatewayProgram, Peer]),
    )
    .only_in_full(),
    Suite::new(
        "interop-3",
        "the suite interop beside the last Redisson 3, except for the kinds that it lacks",
        Task(redisson::suite),
    )
    .only_in_full()
    .with_tools(&[Tool::Nextest, Redis, Java]),
    Suite::new(
        "servers",
        "Redis 8 and Valkey: the suites scripts, differential, gateway and integration on each, as in a quick run",
        Task(servers::suite),
    )
    .only_in_full()
    .with_tools(&[Tool::Nextest, Servers, Webdis]),
    Suite::new("wasm-node", "the Rust code as WebAssembly in Node", Task(checks::wasm_node))
        .with_tools(setup::BUILD),
    Suite::new(
        "wasm-chromium",
        "the Rust code as WebAssembly in Chromium",
        Task(checks::wasm_chromium),
    )
    .with_tools(setup::BROWSER),
    Suite::new(
        "types",
        "the npm package's types, as TypeScript sees them",
        Node("tests/types/run.mjs", &[Package]),
    ),
    Suite::new("package", "the npm package's exports map, files and version", Task(package))
        .with_tools(setup::BUILD),
    Suite::new(
        "jsr",
        "the package for JSR: a rehearsal of its publication, and programs in Deno that use it",
        Node("tests/jsr/run.mjs", &[Jsr, Gateway]),
    )
    .only_in_full(),
    Suite::new(
        "tools",
        "the scripts of the build, the smoke test and the benchmark; the pages show the recorded figures",
        Node("xtask/scripts/tests.mjs", &[]),
    ),
    Suite::new(
        "workflows",
        "the workflows of GitHub Actions, by actionlint",
        Node("tests/workflows/run.mjs", &[]),
    ),
    Suite::new(
        "recipes",
        "the SQL of docs/fencing.md on SQLite",
        Node("tests/recipes/run.mjs", &[]),
    ),
    Suite::new(
        "upstash",
        "@upstash/redis and @upstash/lock against our gateway",
        Node("tests/upstash/run.mjs", &[Package, Gateway]),
    ),
    Suite::new(
        "drop-ins",
        "edgelatch/redlock and edgelatch/upstash-lock beside the packages that they replace; the migration pages",
        Node("tests/drop_ins/run.mjs", &[Package, GatewayProgram]),
    ),
    Suite::new(
        "observability",
        "edgelatch/log and edgelatch/opentelemetry with the real SDK; the programs of docs/observability.md",
        Node("tests/observability/run.mjs", &[Package, Gateway]),
    ),
    Suite::new(
        "web-locks",
        "edgelatch/web-locks: the tests of the web platform, and several clients; in a full run in Deno, Bun, Chromium and workerd too",
        Node("tests/runtimes/web_locks/run.mjs", &[Package, Gateway]),
    )
    .with_tools(&[Chromium]),
    Suite::new(
        "testing",
        "edgelatch/testing under fake timers of Node, in Deno and Bun; in a full run of Vitest and Jest, and in jsdom; the page about it",
        Node("tests/testing/run.mjs", &[Package, Bundlers]),
    ),
    Suite::new(
        "proxies",
        "the gateway behind nginx and Caddy, and called by pages on other origins",
        Node("tests/proxies/run.mjs", &[GatewayProgram]),
    )
    .only_in_full()
    .with_tools(&[Proxies, Chromium]),
    Suite::new(
        "runtimes",
        "the packed npm package in Node, Deno, Bun, Chromium and workerd",
        Node("tests/runtimes/run.mjs", &[Package, Gateway]),
    )
    .with_tools(&[Webdis, Chromium]),
    Suite::new(
        "browsers",
        "the packed npm package in Firefox and in WebKit",
        Node("tests/runtimes/browsers.mjs", &[Package, Gateway]),
    )
    .only_in_full()
    .with_tools(&[Firefox, WebKit]),
    Suite::new(
        "bundlers",
        "the packed npm package built by bundlers and frameworks, and run; a few in a quick run",
        Task(bundlers),
    )
    .with_tools(setup::BROWSER),
    Suite::new(
        "readme",
        "the programs of both READMEs, as they stand there",
        Node("tests/readme/run.mjs", &[Package, Gateway]),
    )
    .with_tools(&[Chromium]),
    Suite::new(
        "plain-build",
        "the programs of both READMEs, with the npm package that has the standard library of rustup",
        Node("tests/readme/run.mjs", &[PlainPackage, Gateway]),
    )
    .only_in_full()
    .with_tools(&[Chromium]),
    Suite::new(
        "examples",
        "the programs of examples/, each started by the command of its README",
        Node("tests/examples/run.mjs", &[Package, Gateway, GatewayProgram, Examples]),
    ),
    Suite::new("smoke", "cargo xtask demo --once", Task(smoke)).with_tools(setup::DEMO),
    Suite::new("demo", "the demo's page in Chromium", Node("tests/demo/run.mjs", &[Demo]))
        .only_in_full()
        .with_tools(&[Chromium]),
    Suite::new(
        "docs-site",
        "the documentation site: links, search, the width of a phone; in a full run pictures of it in Chromium and Firefox",
        Node("tests/site/run.mjs", &[Site]),
    )
    .with_tools(&[Chromium]),
    Suite::new("doc", "the documentation without a warning", Task(checks::doc)).only_in_full(),
    Suite::new("doctest", "the examples in the Rust documentation", Task(checks::doctest))
        .only_in_full(),
    Suite::new(
        "msrv",
        "no dependency wants a newer Rust than we promise",
        Task(checks::msrv),
    )
    .only_in_full(),
    Suite::new(
        "deny",
        "licence, source and version of every dependency, and advisories where the network answers",
        Task(checks::deny),
    )
    .only_in_full()
    .with_tools(&[CargoDeny, CargoVet]),
    Suite::new(
        "hosts",
        "the npm package in hosts that are stopped, killed, hidden or frozen, and in requests that overlap",
        Node("tests/runtimes/hosts.mjs", &[Package, Gateway]),
    )
    .only_in_full()
    .with_tools(&[Chromium]),
    Suite::new(
        "fuzzing",
        "everything that reads outside data, guided by coverage, from fixed seeds",
        Task(fuzz::suite),
    )
    .only_in_full()
    .with_tools(setup::FUZZ),
    Suite::new(
        "porcupine",
        "histories of the simulation, judged once more by an independent checker",
        Task(porcupine::suite),
    )
    .only_in_full()
    .with_tools(&[Go]),
    Suite::new(
        "soak",
        "100,000 cycles in Node and in workerd, and memory does not grow",
        Node(SOAK.0, SOAK.1),
    )
    .only_in_full(),
    Suite::new("reproducible", "two clean builds of the WebAssembly are equal", Task(reproducible))
        .only_in_full()
        .with_tools(setup::BUILD),
    Suite::new(
        "bench",
        "the quick benchmark finds a figure for every cell of its tables",
        Task(bench::suite),
    )
    .only_in_full()
    .with_tools(setup::BENCH),
];
