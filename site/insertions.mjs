/**
 * Texts of other files inside a page, each named by a comment in a line of its own:
 *
 * `<!-- program NAME of FILE -->`: the block of code of a page that begins with a comment with this
 * name; a suite runs these programs.
 * `<!-- section TITLE of FILE -->`: the text below a heading, up to the next one of its level.
 * `<!-- picture NAME -->`: a picture of `pictures.mjs`.
 * `<!-- chart ID -->`: a table of the recorded benchmark as bars.
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { drawPicture } from "./drawing.mjs";
import { withSiteLinks } from "./links.mjs";
import { PICTURES } from "./pictures.mjs";

const INSERTION = /^<!-- (program|section|picture|chart) (.+?)(?: of (\S+))? -->$/gm;

/** Returns the text of a page with its insertions. `options` are those of `withSiteLinks`. */
export async function withInsertions(text, root, options) {
  const { draw } = await import(join(root, "xtask/scripts/bench/chart.mjs"));
  const results = JSON.parse(await readFile(join(root, "bench/results.json"), "utf8"));
  const read = (file) => readFile(join(root, file), "utf8");
  const kinds = {
    program: async (name, file) => programOf(await read(file), name, file),
    section: async (title, file) => withSiteLinks(sectionOf(await read(file), title, file), { ...options, file }),
    picture: async (name) => drawPicture(PICTURES[name] ?? missing("picture", name)),
    chart: async (id) => chartOf(draw(results.tables.find((table) => table.id === id) ?? missing("chart", id))),
  };
  const found = [...text.matchAll(INSERTION)];
  const parts = await Promise.all(found.map(([, kind, name, file]) => kinds[kind](name, file)));
  return text.replace(INSERTION, () => parts.shift());
}

function programOf(text, name, file) {
  const blocks = [...text.matchAll(/^```\w+\n(.*)\n[^]*?^```$/gm)];
  const found = blocks.find(([, first]) => first === `// ${name}`) ?? missing(`program in ${file}`, name);
  return found[0];
}

function sectionOf(text, title, file) {
  const [, rest] = text.split(new RegExp(`^## ${title}\n`, "m"));
  if (rest === undefined) missing(`section in ${file}`, title);
  return rest.split(/^## /m)[0].trim();
}

/** The chart without its own style: the site has light and dark colours. */
function chartOf(svg) {
  return `<div class="chart" tabindex="0">${svg.replace(/<style>.*<\/style>/, "").trim()}</div>`;
}

function missing(kind, name) {
  throw new Error(`no ${kind}: ${name}`);
}
