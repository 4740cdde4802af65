import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";

import { scopedToken } from "./scoped-token.js";

const { GATEWAY_URL = "http://127.0.0.1:8079", SCOPE_KEY } = process.env;

const PREFIX = "draft-7:";

/** In a real program a row of a database, which compares the token in the same statement. */
const draft = { text: "", fence: 0 };

/** The package for browsers, as it is: `index.js`, and the files that it imports. */
const PACKAGE = ["index.js", "edgelatch.js", "wasm/inline.js"];

const sendPackage = (file) => (_request, response) => send(response, "text/javascript", new URL(file, import.meta.resolve("edgelatch")));

const ROUTES = {
  "GET /": (_request, response) => send(response, "text/html", "page.html"),
  "GET /page.js": (_request, response) => send(response, "text/javascript", "page.js"),
  ...Object.fromEntries(PACKAGE.map((file) => [`GET /edgelatch/${file}`, sendPackage(file)])),
  "GET /draft": (_request, response) => response.end(draft.text),
  "POST /lock-token": async (_request, response) => {
    // Check here that the user may edit the draft.
    const token = await scopedToken(SCOPE_KEY, { prefix: PREFIX, maxLeaseMs: 60_000, livesSeconds: 3_600 });
    response.end(JSON.stringify({ url: GATEWAY_URL, token, name: `${PREFIX}text` }));
  },
  "PUT /draft": async (request, response) => {
    const fence = Number(request.headers["fencing-token"]);
    const written = await text(request);
    if (!(fence >= draft.fence)) return response.writeHead(409).end("stale");
    Object.assign(draft, { text: written, fence });
    response.end("saved");
  },
};

function send(response, type, file) {
  response.writeHead(200, { "content-type": type });
  createReadStream(file).pipe(response);
}

const server = createServer(async (request, response) => {
  const route = ROUTES[`${request.method} ${request.url}`];
  if (route) await route(request, response);
  else response.writeHead(404).end();
});
server.listen(Number(process.env.PORT ?? 3000), () => console.log(`listening on http://localhost:${server.address().port}`));
