/**
 * Runs the cases of a scoped token in a page. Calls `report` and `finish`, which the browser's
 * driver has defined.
 */

import { connect } from "edgelatch";
import { scoped } from "../cases/scoped.mjs";

const query = new URLSearchParams(location.search);
const only = query.get("only");
const locks = connect({ url: query.get("url"), token: query.get("token") });
const id = crypto.randomUUID();
const world = { locks, id, name: `own:lock:${id}` };

await globalThis.report({ begun: true });
for (const [name, run] of Object.entries(scoped).filter(([name]) => !only || name === only)) {
  const error = await run(world).then(() => undefined, (error) => String(error?.stack ?? error));
  await globalThis.report({ name, error });
}
globalThis.finish();
