// The entry for every environment but Workers and edge functions. The module is text within a
// JavaScript module: nothing has to be found, copied, fetched or configured.
import { clients } from "./api.js";
import { decode } from "./decode.js";
import { start } from "./start.js";
import { order, size, text } from "./wasm/inline.js";

const load = () => decode(text, order, size);

export const connect = /* @__PURE__ */ clients(load);
export * from "./public.js";

// Bundled without the condition "workerd": a Worker may compile bytes while it starts, and no more
// in a request. Where it may not even then, `connect` reports it.
if (globalThis.navigator?.userAgent === "Cloudflare-Workers") {
  try {
    start(load);
  } catch {}
}
