//! The storeys of `docs/reliability.md`, as commands.

use anyhow::{Context as _, Result};

/// A storey of the tests: what cargo is to run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Storey {
    /// As that page calls it.
    pub(super) name: &'static str,
    /// Which package and which of its tests are built.
    pub(super) build: &'static [&'static str],
    /// Which of them are run. What compares hashes of scripts is left out: it finds any change, and so tells nothing.
    pub(super) run: &'static [&'static str],
    /// Whether it runs the scripts themselves; else a fault in one is none of its business.
    pub(super) runs_scripts: bool,
}

/// From fast to slow.
pub(super) const STOREYS: &[Storey] = &[
    Storey {
        name: "T0",
        build: &["--package", "edgelatch", "--test", "scripts"],
        run: &["vectors::"],
        runs_scripts: true,
    },
    Storey {
        name: "T1",
        build: &["--package", "edgelatch", "--lib", "--test", "conversations", "--test", "dialect"],
        run: &[],
        runs_scripts: false,
    },
    Storey {
        name: "T5",
        build: &["--package", "edgelatch", "--test", "scripts"],
        run: &["random::"],
        runs_scripts: true,
    },
    Storey {
        name: "T2",
        build: &["--package", "edgelatch", "--test", "scripts"],
        run: &["--skip", "vectors::", "--skip", "pinned::", "--skip", "random::"],
        runs_scripts: true,
    },
    Storey {
        name: "T4",
        build: &["--release", "--package", "edgelatch", "--test", "sim"],
        run: &["--schedules", "60000"],
        runs_scripts: false,
    },
    Storey {
        name: "T3",
        build: &[
            "--package",
            "edgelatch",
            "--test",
            "bad_gateway",
            "--test",
            "client",
            "--test",
            "faults",
            "--test",
            "conformance",
        ],
        run: &[],
        runs_scripts: true,
    },
    Storey {
        name: "T2-cluster",
        build: &["--package", "edgelatch", "--test", "cluster"],
        run: &[],
        runs_scripts: true,
    },
    Storey {
        name: "T6",
        build: &["--release", "--package", "edgelatch", "--test", "model", "--test", "model_multi"],
        run: &[],
        runs_scripts: false,
    },
];

impl Storey {
    /// The one of this name.
    pub(super) fn named(name: &str) -> Result<&'static Self> {
        let found = STOREYS.iter().find(|storey| storey.name == name);
        found.with_context(|| format!("no storey is run by this name: {name}"))
    }
}
