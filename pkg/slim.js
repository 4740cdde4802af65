// No loading at all: call `init` with the module before anything else.
export { initSync as init } from "./wasm/edgelatch.js";
export * from "./api.js";
