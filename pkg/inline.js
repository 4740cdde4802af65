// Anywhere else: the module is text within a module. Larger, but needs neither files nor assets.
import base64 from "./wasm/inline.js";
import { initSync } from "./wasm/edgelatch.js";

initSync({ module: Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)) });
export * from "./api.js";
