/** Passes the module itself, as users of `edgelatch/slim` do. */

import { init } from "edgelatch/slim";

init({ module: await WebAssembly.compileStreaming(fetch("/node_modules/edgelatch/wasm/edgelatch_bg.wasm")) });
export * from "edgelatch/slim";
