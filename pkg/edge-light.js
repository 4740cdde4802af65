// Edge functions of Vercel and Next.js import the module compiled; `?module` is their way to say
// so.
import module from "./wasm/edgelatch_bg.wasm?module";
import { clients } from "./api.js";

export const connect = /* @__PURE__ */ clients(() => module);
export * from "./public.js";
