//! The layers of `docs/reliability.md` that look for seeded faults, as commands of cargo-nextest.

use anyhow::{Context as _, Result};

/// A layer of the tests: what cargo-nextest builds and runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layer {
    /// The name in `docs/reliability.md` and in the files of the faults.
    pub(super) name: &'static str,
    /// The flags that select what is built: packages and test binaries.
    pub(super) build: &'static str,
    /// The filterset of the tests that run; empty for all of them. Tests that compare hashes of
    /// scripts do not run: they find any change and so show nothing.
    pub(super) filter: &'static str,
    /// Whether it runs the scripts themselves and not their model. A layer that does not run them
    /// cannot find a fault in a script.
    pub(super) runs_scripts: bool,
}

/// The tests of the scripts, and of the gateway.
const SCRIPTS: &str = "--package edgelatch-tests --test scripts";
const GATEWAY: &str = "--package edgelatch-gateway --test gateway";

/// The layers, from fast to slow.
pub(super) const LAYERS: &[Layer] = &[
    Layer::new("vectors", SCRIPTS, "test(/::vectors::/)").with_scripts(),
    Layer::new(
        "unit",
        "--package edgelatch --package edgelatch-proto --package edgelatch-tests --lib --test conversations --test wire",
        "",
    ),
    Layer::new("differential", SCRIPTS, "test(/^scripts::differential::/)").with_scripts(),
    Layer::new("scripts", SCRIPTS, "not test(/::(vectors|pinned|differential)::/)").with_scripts(),
    Layer::new("schedules", "--release --package edgelatch-tests --test schedules", ""),
    Layer::new(
        "simulation",
        "--release --package edgelatch-tests --test simulation",
        "test(/^every_promise_is_kept::/)",
    ),
    Layer::new(
        "gateway",
        GATEWAY,
        "not test(/attacker::|^(cluster|lost|redirections|replicas|sentinel)::/)",
    )
    .with_scripts(),
    Layer::new("attacker", GATEWAY, "test(/attacker::/) - test(/to_a_cluster/)").with_scripts(),
    Layer::new(
        "integration",
        "--package edgelatch-tests --test integration --test fault_injection",
        "not test(/^integration::cluster::/)",
    )
    .with_scripts(),
    Layer::new(
        "cluster",
        "--package edgelatch-tests --test integration",
        "test(/^integration::cluster::/)",
    )
    .with_scripts(),
    Layer::new("model-checking", "--release --package edgelatch-tests --test model_checking", ""),
];

impl Layer {
    const fn new(name: &'static str, build: &'static str, filter: &'static str) -> Self {
        Self { name, build, filter, runs_scripts: false }
    }

    /// The layer runs the scripts themselves.
    const fn with_scripts(self) -> Self {
        Self { runs_scripts: true, ..self }
    }

    /// Returns the layer of this name.
    pub(super) fn with_name(name: &str) -> Result<&'static Self> {
        let found = LAYERS.iter().find(|layer| layer.name == name);
        found.with_context(|| format!("no layer has the name {name}"))
    }
}
