export * from "./index.js";

/**
 * Sets the package up with its WebAssembly module (`edgelatch/edgelatch.wasm`), compiled or as
 * bytes. Call it once, before anything else.
 */
export function init(options: { module: WebAssembly.Module | BufferSource }): unknown;
