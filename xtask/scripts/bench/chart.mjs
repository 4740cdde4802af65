/** Draws a table as bars: plain SVG that is readable on white and on black. */

import { short } from "./figures.mjs";

const WIDTH = 820;
/** The left end of the bars, and the length of the longest. */
const LEFT = 230;
const LONGEST = 480;
const BAR = 11;
const STEP = 14;
const GAP = 12;
/** The ratio of the largest to the smallest figure from which the scale is logarithmic. */
const WIDE = 40;
/** The colours of edgelatch's columns, in order; all colours are visible on white and on black. */
const OURS = ["#3b82f6", "#06a3b7", "#8b5cf6"];
/** The colours of other libraries, by the beginning of their column's name. */
const THEIRS = {
  "@upstash/lock": "#f97316",
  webdis: "#f97316",
  redlock: "#22a06b",
  "redis-semaphore": "#d946a0",
  Redisson: "#a8801b",
};
const STYLE =
  "text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}.unit{font-weight:600}.dim{fill:#656d76}" +
  "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}}";

/** Returns the whole file. */
export function draw({ title, columns, rows }) {
  const colours = coloursOf(columns);
  const elements = [];
  const text = (x, y, kind, content) => elements.push(`<text x="${x}" y="${y}" class="${kind}">${escaped(content)}</text>`);
  const bar = (x, y, length, colour) =>
    elements.push(`<rect x="${x}" y="${y}" width="${length.toFixed(1)}" height="${BAR}" rx="2" fill="${colour}"/>`);

  text(8, 24, "title", title);
  let [x, y] = [8, 50];
  columns.forEach((column, at) => {
    // The approximate width of the letters in most fonts.
    const width = 24 + column.length * 7;
    if (x + width > WIDTH) [x, y] = [8, y + 18];
    bar(x, y - BAR + 1, BAR, colours[at]);
    text(x + BAR + 4, y, "", column);
    x += width;
  });
  y += GAP;
  for (const unit of new Set(rows.map((row) => row.unit))) {
    const ofUnit = rows.filter((row) => row.unit === unit);
    const scale = scaleOf(ofUnit.flatMap(({ cells }) => cells));
    y += 20;
    text(8, y, "unit", `${unit}${scale.isLogarithmic ? " (logarithmic)" : ""}`);
    for (const { what, cells } of ofUnit) {
      y += GAP;
      text(8, y + Math.trunc((cells.length * STEP) / 2) + 2, "", what);
      cells.forEach((figure, at) => {
        const length = scale.length(figure);
        bar(LEFT, y, length, colours[at]);
        text(LEFT + Math.trunc(length) + 6, y + BAR - 1, "dim", short(figure));
        y += STEP;
      });
    }
    y += GAP;
  }
  const size = `viewBox="0 0 ${WIDTH} ${y + GAP}" width="${WIDTH}" height="${y + GAP}"`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img"><title>${escaped(title)}</title><style>${STYLE}</style>`;
  return `${head}\n${elements.join("\n")}\n</svg>\n`;
}

/**
 * Returns the scale of bars. A logarithmic one begins at the power of ten below the smallest
 * figure, a linear one at zero.
 */
export function scaleOf(figures) {
  const positive = figures.filter((figure) => figure > 0);
  const [least, most] = [Math.min(...positive), Math.max(...positive)];
  const isLogarithmic = most / least > WIDE;
  const start = 10 ** Math.floor(Math.log10(least));
  const part = (figure) => (isLogarithmic ? Math.log10(figure / start) / Math.log10(most / start) : figure / most);
  return { isLogarithmic, length: (figure) => Math.max(figure > 0 ? part(figure) * LONGEST : 0, 1) };
}

function coloursOf(columns) {
  let ours = 0;
  const known = (column) => Object.entries(THEIRS).find(([name]) => column.startsWith(name))?.[1];
  return columns.map((column) => known(column) ?? OURS[ours++ % OURS.length]);
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
