/**
 * Draws a recorded run of the demo's lock as SVG, for the README: with the texts of the demo's
 * page and the colours of its style sheet, light and dark.
 */

import { readFileSync } from "node:fs";

import { describe, labelsOf, secondsText, tokenParts } from "../../../www/labels.js";

const ROOT = new URL("../../../", import.meta.url);
/** The recorded run, and its picture. */
export const RECORD = "docs/timeline.json";
export const PICTURE = "docs/timeline.svg";

const WIDTH = 840;
const HEAD = 190;
const AXIS = 28;
const ROW = 64;
const BAR = 34;
/** The width of the end of a token. */
const LABEL = 104;
/** The names of the colours in `www/demo.css`. */
const COLOURS = ["surface", "sunk", "ink", "muted", "line", "edge", "hold", "on-hold", "hold-soft", "dead", "dead-soft"];

export const read = (file) => readFileSync(new URL(file, ROOT), "utf8");

/** Returns the whole file: the `contenders` of a run that is over, and its length `span` in ms. */
export function draw({ contenders, span }) {
  const run = { labels: labelsOf("lock"), started: true, endedAt: span, kind: "lock" };
  const x = (at) => HEAD + (at / span) * (WIDTH - HEAD - 84);
  const height = AXIS + contenders.length * ROW;
  const parts = [rect("surface", 0, 0, WIDTH, height), rect("sunk", HEAD, 0, WIDTH - HEAD, height)];
  for (let second = 0; second * 1000 <= span; second += 2) {
    parts.push(line("tick", x(second * 1000), 0, height), text("axis", x(second * 1000) + 5, 18, `${second} s`));
  }
  contenders.forEach((one, index) => {
    const y = AXIS + index * ROW;
    parts.push(`<g>${lane(one, run, span, x, y).join("")}</g>`);
  });
  const size = `viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}"`;
  const title = "The demo's time line: a killed holder's lease ends, the next Worker takes over with a higher token, and the late write is refused";
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img"><title>${title}</title><style>${style()}</style>`;
  return `${head}\n${parts.join("\n")}\n</svg>\n`;
}

function lane(one, run, span, x, y) {
  const middle = y + ROW / 2;
  const isDead = one.killedAt !== null;
  const parts = [
    line("row", 0, y, y, WIDTH),
    text("name", 16, middle - 10, one.name),
    text(isDead ? "state bad" : "state", 16, middle + 7, describe(one, run, span)),
    text("token", 16, middle + 23, tokenParts(one.token).join("")),
    line("wait", x(one.waitFrom), middle, middle, x(one.holds[0].from)),
  ];
  for (const hold of one.holds) {
    parts.push(rect("hold", x(hold.from), middle - BAR / 2, x(hold.to) - x(hold.from), BAR, 6));
    const width = x(hold.to) - x(hold.from);
    if (width >= LABEL) parts.push(text("bar", x(hold.from) + 7, middle + 4, run.labels.bar(one)));
  }
  for (const at of one.renewals) parts.push(rect("notch", x(at), middle + 9, 2, BAR / 2 - 9));
  if (isDead) {
    parts.push(rect("rest", x(one.killedAt), middle - BAR / 2, x(one.leaseEnd) - x(one.killedAt), BAR, 6));
    parts.push(text("left", x(one.killedAt) + 10, middle + 5, secondsText(one.leaseEnd - one.killedAt)));
    parts.push(line("kill", x(one.killedAt), middle - 24, middle + 24));
  }
  if (one.lateWrite) {
    parts.push(`<circle class="late" cx="${round(x(one.lateWrite.at))}" cy="${middle}" r="6"/>`);
    parts.push(text("state bad", x(one.lateWrite.at) + 11, middle + 5, one.lateWrite.accepted ? "accepted" : "refused"));
  }
  return parts;
}

/** The colours of the page: a class for each kind of part, and the dark ones for dark screens. */
function style() {
  const css = read("www/demo.css");
  const pairs = COLOURS.map((name) => {
    const [, light, dark] = new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\);`).exec(css);
    return { name, light, dark };
  });
  const variables = (kind) => `svg{${pairs.map((pair) => `--${pair.name}:${pair[kind]}`).join(";")}}`;
  return [
    variables("light"),
    `@media(prefers-color-scheme:dark){${variables("dark")}}`,
    "text{font:13px system-ui,sans-serif;fill:var(--ink)}.name{font-weight:600}.state,.axis,.token{fill:var(--muted)}",
    ".token,.bar,.left{font-family:ui-monospace,monospace}.token,.axis{font-size:11px}.bar{fill:var(--on-hold);font-weight:600}",
    "text.bad{fill:var(--dead);font-weight:600}.left{fill:var(--dead)}.surface{fill:var(--surface)}.sunk{fill:var(--sunk)}",
    ".tick,.row{stroke:var(--line)}.wait{stroke:var(--edge);stroke-width:3;stroke-dasharray:0 7;stroke-linecap:round}",
    ".hold{fill:var(--hold)}.notch{fill:var(--on-hold)}.kill{stroke:var(--dead);stroke-width:3}",
    ".rest{fill:var(--dead-soft);stroke:var(--dead);stroke-width:1.5;stroke-dasharray:5 4}.late{fill:none;stroke:var(--dead);stroke-width:3}",
  ].join("");
}

function rect(kind, x, y, width, height, radius = 0) {
  return `<rect class="${kind}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${height}" rx="${radius}"/>`;
}

/** A vertical line, or a horizontal one if `x2` differs from `x`. */
function line(kind, x, y1, y2, x2 = x) {
  return `<line class="${kind}" x1="${round(x)}" y1="${y1}" x2="${round(x2)}" y2="${y2}"/>`;
}

function text(kind, x, y, content) {
  return `<text class="${kind}" x="${round(x)}" y="${y}">${content}</text>`;
}

function round(value) {
  return Number(value.toFixed(1));
}
