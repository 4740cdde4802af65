// Alone in this file, so that entries without the rest of the package can use it.

/** Marks clients, locks and all objects created from them, of every copy of the package. */
export const OBJECT = Symbol.for("edgelatch.object");
