// Browsers and bundlers: the module is an asset beside this file.
import init from "./wasm/edgelatch.js";

await init({ module_or_path: new URL("./wasm/edgelatch_bg.wasm", import.meta.url) });
export * from "./api.js";
