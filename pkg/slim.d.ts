export * from "./index.js";

/**
 * Starts the package's WebAssembly module, `edgelatch/edgelatch.wasm`, which the caller loads. Call
 * it once, before {@link connect}.
 *
 * @param options the module, compiled or as bytes.
 * @throws {StartError} the module cannot start here.
 */
export function init(options: { module: WebAssembly.Module | BufferSource }): unknown;
