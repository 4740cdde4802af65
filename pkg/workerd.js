// Workers may not compile bytes: the module is imported, already compiled.
import module from "./wasm/edgelatch_bg.wasm";
import { initSync } from "./wasm/edgelatch.js";

initSync({ module });
export * from "./api.js";
