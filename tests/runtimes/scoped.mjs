/** Checks that a page with a scoped token can lock only the names of its own. */

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { required } from "./project.mjs";

const key = required("EDGELATCH_TEST_SCOPE_KEY");

/** Signs a token with the code in `docs/scoped-tokens.md`. */
export async function scopedToken(claims) {
  const page = await readFile(new URL("../../docs/scoped-tokens.md", import.meta.url), "utf8");
  const [, code] = page.match(/^```js\n\/\/ scoped-token\.js\n([^]+?)^```$/m) ?? [];
  assert.ok(code, "the page has the code");
  const folder = await mkdtemp(join(tmpdir(), "edgelatch-scoped-"));
  try {
    const file = join(folder, "scoped-token.mjs");
    await writeFile(file, code);
    const { scopedToken: sign } = await import(pathToFileURL(file));
    return await sign(key, claims);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
