/**
 * Runs the suite in a page. Calls `report` and `finish`, which the browser's driver has defined.
 */

import * as edgelatch from "edgelatch";
import * as webLocks from "edgelatch/web-locks";
import { run } from "./suite.mjs";

const query = new URLSearchParams(location.search);
const [url, token] = [query.get("url"), query.get("token")];
await run({ edgelatch, webLocks, url, token, only: query.get("only") ?? undefined, report: globalThis.report });
globalThis.finish();
