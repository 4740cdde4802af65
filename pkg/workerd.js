// The entry for Workers, which import the module compiled: they must not compile bytes in a
// request.
import module from "./wasm/edgelatch_bg.wasm";
import { clients } from "./api.js";

export const connect = /* @__PURE__ */ clients(() => module);
export * from "./public.js";
