// The entry without the module: the caller passes it to `init` before `connect`.
import { clients } from "./api.js";
import { StartError } from "./errors.js";
import { start } from "./start.js";

export const init = ({ module }) => start(() => module);
export const connect = /* @__PURE__ */ clients(() => {
  throw new StartError("edgelatch/slim has no module yet: call init({ module }) before connect()");
});
export * from "./public.js";
