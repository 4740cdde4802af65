// Node, Deno and Bun read the module from the package's folder.
import { readFileSync } from "node:fs";
import { initSync } from "./wasm/edgelatch.js";

initSync({ module: readFileSync(new URL("./wasm/edgelatch_bg.wasm", import.meta.url)) });
export * from "./api.js";
