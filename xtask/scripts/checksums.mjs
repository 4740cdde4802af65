/**
 * `node checksums.mjs <folder> <tarball>`: copies the npm package to the folder, and writes two
 * files beside it: `SHA256SUMS` of all files there, in the format of `sha256sum --check`; and
 * `integrity.json`, with the hash of each script and module of the package for the `integrity` of
 * an import map, of a `script` or of a `fetch`.
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const [folder, tarball] = process.argv.slice(2);
const hash = (algorithm, bytes, form) => createHash(algorithm).update(bytes).digest(form);
const unpacked = (...values) => execFileSync("tar", [...values], { maxBuffer: 16 << 20 });

const packed = unpacked("-tzf", tarball).toString().split("\n").filter((name) => /\.(js|wasm)$/.test(name)).sort();
const integrity = packed.map((name) => [name.replace("package/", "./"), `sha384-${hash("sha384", unpacked("-xzOf", tarball, name), "base64")}`]);
writeFileSync(join(folder, "integrity.json"), `${JSON.stringify(Object.fromEntries(integrity), null, 2)}\n`);

copyFileSync(tarball, join(folder, basename(tarball)));
const files = readdirSync(folder).filter((name) => name !== "SHA256SUMS").sort();
const sums = files.map((name) => `${hash("sha256", readFileSync(join(folder, name)), "hex")}  ${name}\n`);
writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
