/** The package's WebAssembly module, where a runtime or a bundler imports it compiled: for `init` of `edgelatch/slim`. */
declare const module: WebAssembly.Module;
export = module;
