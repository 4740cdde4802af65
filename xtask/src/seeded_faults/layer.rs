//! The layers of `docs/reliability.md` that look for seeded faults, as commands of cargo-nextest.

use anyhow::{Context as _, Result};

/// A layer of the tests: what cargo-nextest builds and runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layer {
    /// The name in `docs/reliability.md` and in the files of the faults.
    pub(super) name: &'static str,
    /// The packages and test binaries that are built.
    pub(super) build: &'static [&'static str],
    /// The filterset of the tests that run; empty for all of them. Tests that compare hashes of
    /// scripts do not run: they find any change and so show nothing.
    pub(super) filter: &'static str,
    /// Whether it runs the scripts themselves and not their model. A layer that does not run them
    /// cannot find a fault in a script.
    pub(super) runs_scripts: bool,
}

/// The tests of the gateway.
const GATEWAY: &[&str] = &["--package", "edgelatch-gateway", "--test", "gateway"];

/// The layers, from fast to slow.
pub(super) const LAYERS: &[Layer] = &[
    Layer {
        name: "vectors",
        build: &["--package", "edgelatch-tests", "--test", "scripts"],
        filter: "test(/::vectors::/)",
        runs_scripts: true,
    },
    Layer {
        name: "unit",
        build: &[
            "--package",
            "edgelatch",
            "--package",
            "edgelatch-proto",
            "--package",
            "edgelatch-tests",
            "--lib",
            "--test",
            "conversations",
            "--test",
            "wire",
        ],
        filter: "",
        runs_scripts: false,
    },
    Layer {
        name: "differential",
        build: &["--package", "edgelatch-tests", "--test", "scripts"],
        filter: "test(/^scripts::differential::/)",
        runs_scripts: true,
    },
    Layer {
        name: "scripts",
        build: &["--package", "edgelatch-tests", "--test", "scripts"],
        filter: "not test(/::(vectors|pinned|differential)::/)",
        runs_scripts: true,
    },
    Layer {
        name: "schedules",
        build: &["--release", "--package", "edgelatch-tests", "--test", "schedules"],
        filter: "",
        runs_scripts: false,
    },
    Layer {
        name: "simulation",
        build: &["--release", "--package", "edgelatch-tests", "--test", "simulation"],
        filter: "test(/^every_promise_is_kept::/)",
        runs_scripts: false,
    },
    Layer {
        name: "gateway",
        build: GATEWAY,
        filter: "not test(/attacker::|^(cluster|lost|redirections|replicas|sentinel)::/)",
        runs_scripts: true,
    },
    Layer {
        name: "attacker",
        build: GATEWAY,
        filter: "test(/attacker::/) - test(/to_a_cluster/)",
        runs_scripts: true,
    },
    Layer {
        name: "integration",
        build: &[
            "--package",
            "edgelatch-tests",
            "--test",
            "integration",
            "--test",
            "fault_injection",
        ],
        filter: "not test(/^integration::cluster::/)",
        runs_scripts: true,
    },
    Layer {
        name: "cluster",
        build: &["--package", "edgelatch-tests", "--test", "integration"],
        filter: "test(/^integration::cluster::/)",
        runs_scripts: true,
    },
    Layer {
        name: "model-checking",
        build: &["--release", "--package", "edgelatch-tests", "--test", "model_checking"],
        filter: "",
        runs_scripts: false,
    },
];

impl Layer {
    /// Returns the layer of this name.
    pub(super) fn named(name: &str) -> Result<&'static Self> {
        let found = LAYERS.iter().find(|layer| layer.name == name);
        found.with_context(|| format!("no layer has the name {name}"))
    }
}
