// The entry for edge functions of Vercel and Next.js, which import a module compiled with
// `?module`.
import module from "./wasm/edgelatch_bg.wasm?module";
import { clients } from "./api.js";

export const connect = /* @__PURE__ */ clients(() => module);
export * from "./public.js";
