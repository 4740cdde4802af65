//! Installs programs and libraries from npm, for builds and tests.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::fingerprint::Fingerprint;
use crate::progress::run;
use crate::workspace::{Workspace, which};

/// A folder of the repository with a `package.json` and its lock file.
pub(crate) struct List {
    folder: &'static str,
    about: &'static str,
}

/// The tools of builds and most tests.
pub(crate) const TOOLS: List = List {
    folder: "xtask/tools",
    about: "npm tools: wrangler, workerd, Deno, Bun and others, about 800 MB, once",
};
/// The environments in which the npm package is tested.
pub(crate) const BUNDLERS: List = List {
    folder: "tests/bundlers",
    about: "npm: bundlers, frameworks and test runners, about 1.2 GB, once",
};
/// The packages that the programs of `examples/` use.
pub(crate) const EXAMPLES: List = List {
    folder: "tests/examples",
    about: "npm: the packages that the examples use, about 30 MB, once",
};

/// The generators of the documentation site, and the client of both browsers that its tests use.
pub(crate) const SITE: List =
    List { folder: "site", about: "npm: VitePress, TypeDoc and others, about 200 MB, once" };

impl List {
    /// Returns the folder of the installed packages: in the cache, named by the lock file's
    /// content.
    pub(crate) fn node_modules(&self, workspace: &Workspace) -> Result<PathBuf> {
        let lock =
            Fingerprint::new().path(&workspace.root.join(self.folder).join("package-lock.json"))?;
        Ok(workspace.cache.join(format!("npm-{}", lock.text())).join("node_modules"))
    }

    /// Returns whether the packages of the lock file are installed.
    pub(super) fn is_installed(&self, workspace: &Workspace) -> bool {
        self.node_modules(workspace).is_ok_and(|folder| folder.exists())
    }

    /// Installs exactly the packages of the lock file.
    pub(super) fn install(&self, workspace: &Workspace) -> Result<()> {
        ensure!(which("npm").is_some(), "there is no npm; install Node.js 20 or newer, with npm");
        let modules = self.node_modules(workspace)?;
        let folder = modules.parent().context("node_modules has a parent")?;
        workspace.cached(folder, |partial| {
            for file in ["package.json", "package-lock.json"] {
                fs::copy(workspace.root.join(self.folder).join(file), partial.join(file))?;
            }
            let mut command = workspace.command("npm ci --no-audit --no-fund");
            command.current_dir(partial);
            // The machine's npm installs these programs: the one Node version that suits all of
            // them is among them.
            command.env("npm_config_engine_strict", "false");
            run(workspace, self.about, &mut command)
        })
    }
}
