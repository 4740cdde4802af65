/**
 * The package's WebAssembly module, for {@link init} of `edgelatch/slim`, in runtimes and bundlers
 * that import a module compiled.
 */
declare const module: WebAssembly.Module;
export default module;
