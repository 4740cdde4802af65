//! The suites, from fast to slow.

use super::{Suite, compared, javascript, rust};
use crate::setup::Need::{
    CargoDeny, CargoVet, Chromium, Cxx, Java, NpmTools, Redis, WasmBindgen, WasmPack, WasmTarget,
    Webdis, Wrk,
};
use crate::{bench, fuzz, interop, sim};

/// All of them, in the order in which they run.
pub(crate) const SUITES: &[Suite] = &[
    Suite {
        name: "fmt",
        about: "the layout of the Rust code",
        needs: &[],
        files: &[],
        run: rust::fmt,
    },
    Suite {
        name: "deny",
        about: "licence, source and version of every dependency, and advisories where the network answers",
        needs: &[CargoDeny, CargoVet],
        files: &["deny.toml", "supply-chain"],
        run: rust::deny,
    },
    Suite {
        name: "msrv",
        about: "no dependency wants a newer Rust than we promise",
        needs: &[],
        files: &[],
        run: rust::msrv,
    },
    Suite {
        name: "clippy",
        about: "lints, native and WebAssembly",
        needs: &[WasmTarget],
        files: &[],
        run: rust::clippy,
    },
    Suite {
        name: "doc",
        about: "the documentation, without a warning",
        needs: &[],
        files: &[],
        run: rust::doc,
    },
    Suite {
        name: "rust",
        about: "unit, integration and documentation tests, with real Redis and Webdis",
        needs: &[Redis, Webdis],
        files: &["tests"],
        run: rust::tests,
    },
    Suite {
        name: "compared",
        about: "a million random calls of the scripts, on a real Redis and on the model of it",
        needs: &[Redis],
        files: &["tests/scripts.rs"],
        run: compared::suite,
    },
    Suite {
        name: "model",
        about: "the protocols of all objects in the model checker",
        needs: &[],
        files: &["tests/model.rs", "tests/model_multi.rs"],
        run: rust::model,
    },
    Suite {
        name: "sim",
        about: "a million schedules of the client in virtual time, and bugs put in on purpose",
        needs: &[],
        files: &["tests/sim.rs"],
        run: sim::suite,
    },
    Suite {
        name: "wasm-node",
        about: "the Rust code as WebAssembly in Node",
        needs: &[WasmTarget, WasmBindgen, WasmPack, NpmTools],
        files: &["tests/wasm.rs"],
        run: rust::wasm_node,
    },
    Suite {
        name: "wasm-chromium",
        about: "the Rust code as WebAssembly in Chromium",
        needs: &[WasmTarget, WasmBindgen, WasmPack, NpmTools, Chromium],
        files: &["tests/wasm.rs"],
        run: rust::wasm_chromium,
    },
    Suite {
        name: "types",
        about: "the npm package's types, as TypeScript sees them",
        needs: &[WasmTarget, WasmBindgen, NpmTools],
        files: &["tests/types/run.mjs"],
        run: javascript::types,
    },
    Suite {
        name: "package",
        about: "the npm package's exports map, files and version",
        needs: &[WasmTarget, WasmBindgen, NpmTools],
        files: &[],
        run: javascript::package,
    },
    Suite {
        name: "fuzz",
        about: "every border that data crosses, each fuzzed for 30 s, and all that was found by it before",
        needs: &[Cxx, WasmTarget, WasmBindgen, NpmTools],
        files: &["tests/fuzz/Cargo.toml", "tests/fuzz/ffi_bytes/run.mjs"],
        run: fuzz::suite,
    },
    Suite {
        name: "recipes",
        about: "the SQL of docs/fencing.md on SQLite",
        needs: &[NpmTools],
        files: &["tests/recipes/run.mjs", "docs/fencing.md"],
        run: javascript::recipes,
    },
    Suite {
        name: "upstash",
        about: "@upstash/redis and @upstash/lock against our gateway",
        needs: &[Redis, WasmTarget, WasmBindgen, NpmTools],
        files: &["tests/upstash/run.mjs"],
        run: javascript::upstash,
    },
    Suite {
        name: "interop",
        about: "the crate and the npm package beside Redisson itself, on the same Redis",
        needs: &[Redis, Java, WasmTarget, WasmBindgen, NpmTools],
        files: &["tests/interop.rs", "tests/interop/npm/run.mjs", "tests/interop/java/pom.xml"],
        run: interop::suite,
    },
    Suite {
        name: "runtimes",
        about: "the packed npm package in Node, Deno, Bun, Chromium and workerd",
        needs: &[Redis, Webdis, WasmTarget, WasmBindgen, NpmTools, Chromium],
        files: &["tests/runtimes/run.mjs"],
        run: javascript::runtimes,
    },
    Suite {
        name: "soak",
        about: "100,000 cycles in Node and in workerd, and nothing is collected",
        needs: &[Redis, WasmTarget, WasmBindgen, NpmTools],
        files: &["tests/soak/run.mjs"],
        run: javascript::soak,
    },
    Suite {
        name: "demo",
        about: "the main job once, and the demo's page in Chromium",
        needs: &[Redis, WasmTarget, WasmBindgen, NpmTools, Chromium],
        files: &["wrangler.toml", "www/worker.js", "tests/demo/run.mjs"],
        run: javascript::demo,
    },
    Suite {
        name: "bench",
        about: "the quick benchmark finds a figure for every cell of its tables",
        needs: &[Redis, Webdis, Wrk, Java, WasmTarget, WasmBindgen, NpmTools],
        files: &["tests/bench/measure.mjs", "tests/interop/java/pom.xml"],
        run: bench::suite,
    },
];
