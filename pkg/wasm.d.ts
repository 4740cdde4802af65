/**
 * The package's WebAssembly module, where a runtime or a bundler imports it compiled: for {@link
 * init} of `edgelatch/slim`.
 */
declare const module: WebAssembly.Module;
export default module;
