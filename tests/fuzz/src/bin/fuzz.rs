//! Runs the target named by `EDGELATCH_FUZZ_TARGET` under libFuzzer. Without the variable it prints
//! all targets and the number of executions that suffices for each. `cargo xtask fuzz` builds and
//! starts it.

#![no_main]
#![expect(clippy::expect_used, reason = "without a target there is nothing to do")]

use std::env;
use std::path::Path;
use std::process;
use std::sync::OnceLock;

use edgelatch_fuzz::{TARGETS, Target};

static TARGET: OnceLock<&Target> = OnceLock::new();

/// Looks up the target, and writes its known inputs into the folder that `EDGELATCH_FUZZ_SEEDS`
/// names.
fn begin() {
    let Ok(name) = env::var("EDGELATCH_FUZZ_TARGET") else {
        TARGETS.iter().for_each(|target| println!("{} {}", target.name, target.executions));
        process::exit(0)
    };
    let target = edgelatch_fuzz::target(&name).expect("a target of this name");
    if let Some(folder) = env::var_os("EDGELATCH_FUZZ_SEEDS") {
        target.write_seeds(Path::new(&folder)).expect("a folder that can be written to");
    }
    TARGET.get_or_init(|| target);
}

libfuzzer_sys::fuzz_target!(init: begin(), |input: &[u8]| {
    let target = TARGET.get().expect("set before the first input");
    (target.run)(input);
});
