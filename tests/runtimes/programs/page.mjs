/**
 * Runs the suite in a page. Calls `report` and `finish`, which the browser's driver has defined.
 */

import { loaded } from "../watch.mjs";
import * as edgelatch from "edgelatch";
import { run } from "../suite.mjs";

loaded();
const query = new URLSearchParams(location.search);
const [url, token] = [query.get("url"), query.get("token")];
const loads = query.get("loads").split(",").filter(Boolean);
const only = query.get("only") ?? undefined;
await run({ edgelatch, url, token, loads, only, report: globalThis.report });
globalThis.finish();
