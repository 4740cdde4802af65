/**
 * Builds the site: `node build.mjs ROOT REPOSITORY`, in a folder with a copy of `site/` and its
 * packages. ROOT is the checkout, REPOSITORY the address of the source.
 *
 * The site arranges files of the repository and has no copy of a text: each page is read from its
 * file, its links are changed to links of the site, and TypeDoc writes the pages of the types.
 */

import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "vitepress";

import { apiSidebar, entriesOf, writeApi } from "./api.mjs";
import { withInsertions } from "./insertions.mjs";
import { withSiteLinks } from "./links.mjs";
import { GROUPS, MORE } from "./pages.mjs";

const stage = dirname(fileURLToPath(import.meta.url));
const [root, repository] = process.argv.slice(2);

const groups = [...GROUPS, { text: MORE, pages: await unlisted() }].filter(({ pages }) => pages.length > 0);
const texts = [["site/pages/index.md", ""], ...groups.flatMap(({ pages }) => pages.map(([file, address]) => [file, address]))];
/** The other files that pages show, and their addresses. */
const images = [["www/icon.svg", "icon.svg"], ["docs/timeline.svg", "timeline.svg"]];
/** The types of the npm package's entry points, and the addresses of their pages. */
const types = (await entriesOf(root)).map(({ file, folder }) => [`pkg/${file}.d.ts`, `api/${folder}/`]);
const addresses = new Map([...texts, ...images, ...types]);

await rm(join(stage, "src"), { recursive: true, force: true });
for (const [file, address] of texts) {
  const text = await readFile(join(root, file), "utf8");
  const to = join(stage, "src", `${address || "index"}.md`);
  await mkdir(dirname(to), { recursive: true });
  const options = { addresses, repository };
  await writeFile(to, await withInsertions(withSiteLinks(text, { ...options, file }), root, options));
}
await mkdir(join(stage, "src/public"), { recursive: true });
for (const [file, address] of images) await copyFile(join(root, file), join(stage, "src/public", address));
await writeApi(root, join(stage, "src/api"), stage);
await writeFile(join(stage, "contents.json"), JSON.stringify(await contents(), null, 2));
await build(stage);

/** Returns the data that `.vitepress/config.mjs` reads. */
async function contents() {
  const { version } = JSON.parse(await readFile(join(root, "pkg/package.json"), "utf8"));
  const sidebar = groups.map(({ text, pages }) => ({ text, items: pages.map(([, address, title]) => ({ text: title, link: `/${address}` })) }));
  return { version, repository, sidebar, api: await apiSidebar(root, join(stage, "src/api")) };
}

/** Returns the pages of `docs/` that no group names, so that none is missing. */
async function unlisted() {
  const listed = new Set(GROUPS.flatMap(({ pages }) => pages.map(([file]) => file)));
  const names = (await readdir(join(root, "docs"))).filter((name) => name.endsWith(".md")).sort();
  const pages = names.filter((name) => !listed.has(`docs/${name}`)).map(async (name) => {
    const [, title] = /^# (.+)$/m.exec(await readFile(join(root, "docs", name), "utf8"));
    return [`docs/${name}`, name.slice(0, -".md".length), title];
  });
  return Promise.all(pages);
}
