// Starts the WebAssembly module at the first `connect`, not at import: an import never fails,
// fetches or compiles.
import { StartError } from "./errors.js";
import { startEngine } from "./driver.js";

let isStarted = false;

/** Starts the module that `load` returns, compiled or as bytes, unless a module is running. */
export function start(load) {
  if (isStarted) return;
  try {
    startEngine(load());
  } catch (cause) {
    throw cause instanceof StartError ? cause : new StartError(advice(cause), cause);
  }
  isStarted = true;
}

function advice({ message = "" }) {
  const said = "edgelatch cannot start its WebAssembly module";
  if (typeof WebAssembly === "undefined") return `${said}: this runtime has no WebAssembly`;
  if (/Content Security Policy|unsafe-eval/i.test(message)) {
    return `${said}: the page's Content Security Policy forbids it; add 'wasm-unsafe-eval' to script-src`;
  }
  if (/disallowed by embedder/.test(message)) {
    return `${said}: a Worker may not compile it from bytes; bundle with the condition "workerd"`;
  }
  return `${said}: ${message}`;
}
