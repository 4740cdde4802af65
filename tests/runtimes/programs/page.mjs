/** The suite in a page. Gives the results to `report`, which the browser's driver has put there. */

import { loaded } from "../watch.mjs";
import * as edgelatch from "edgelatch";
import { run } from "../suite.mjs";

loaded();
const query = new URLSearchParams(location.search);
const [url, token] = [query.get("url"), query.get("token")];
const loads = query.get("loads").split(",").filter(Boolean);
globalThis.report(await run({ edgelatch, url, token, loads }));
