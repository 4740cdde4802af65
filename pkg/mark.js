// Alone in this file, so that entries without the rest of the package can use it.

/**
 * Marks clients, locks, all objects created from them, and logs, of every copy of the package. On
 * `globalThis` it is the log of all clients without one of their own, which `edgelatch/log` sets.
 */
export const OBJECT = Symbol.for("edgelatch.object");
