/**
 * `node notes.mjs <version>`: prints the section of `CHANGELOG.md` about this version, or fails if
 * there is none.
 */

import { readFileSync } from "node:fs";

const [version] = process.argv.slice(2);
const changelog = readFileSync(new URL("../../CHANGELOG.md", import.meta.url), "utf8");

/** The heading is the version, optionally with a date after it. */
const section = changelog.split(/^(?=## )/m).find((text) => /^## \S+/.exec(text)?.[0] === `## ${version}`);
if (!section) {
  console.error(`CHANGELOG.md has no section ${version}`);
  process.exit(1);
}
process.stdout.write(`${section.slice(section.indexOf("\n")).trim()}\n`);
