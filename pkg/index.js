// The entry for every environment except Workers and edge functions. The module is text in a
// JavaScript module, so no file has to be found, copied, fetched or configured.
import { clients } from "./api.js";
import { decode } from "./decode.js";
import { start } from "./start.js";
import { order, size, text } from "./wasm/inline.js";

const load = () => decode(text, order, size);

export const connect = /* @__PURE__ */ clients(load);
export * from "./public.js";

// In a bundle without the condition "workerd", a Worker may compile bytes while it starts, but not
// in a request. If it may not at all, `connect` reports it.
if (globalThis.navigator?.userAgent === "Cloudflare-Workers") {
  try {
    start(load);
  } catch {}
}
