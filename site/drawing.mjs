/**
 * Draws what several parties do over time: a column for each, time runs downwards. Plain SVG with
 * classes for the site's colours; a phone shows it without a change.
 */

const WIDTH = 400;
/** The width of the times at the left. */
const GUTTER = 44;
const HEAD = 40;
const ROW = 34;
const BAR = 14;

/**
 * Returns the picture with its caption. `columns` are the parties; `rows` the events in order, each
 * with a time `at` or none:
 *
 * `{ from, to, text }` is a message between columns, `lost` if it never arrives and `late` if the
 * receiver rejects it; `{ column, text }` is an event of one party.
 *
 * `bars` are states of a party from one row to another: `hold`, `wait`, `rest` (of a lease without
 * a holder) or `stopped`. `scenarios` are the numbers in docs/reliability.md of the tests that show
 * the same.
 */
export function drawPicture({ title, description, columns, rows, bars, scenarios }) {
  const x = (column) => GUTTER + ((column + 0.5) * (WIDTH - GUTTER)) / columns.length;
  const y = (row) => HEAD + (row + 0.5) * ROW;
  const height = HEAD + rows.length * ROW + 4;
  const parts = columns.flatMap((name, column) => [
    line("life", x(column), HEAD - 8, x(column), height),
    text("party", x(column), 16, name),
  ]);
  for (const { column, from, to, kind } of bars) {
    parts.push(`<rect class="bar ${kind}" x="${x(column) - BAR / 2}" y="${y(from)}" width="${BAR}" height="${y(to) - y(from)}" rx="4"/>`);
  }
  rows.forEach((row, index) => {
    if (row.at) parts.push(text("time", GUTTER - 6, y(index) + 4, row.at));
    parts.push(...(row.from === undefined ? event(row, x, y(index), columns.length) : message(row, x, y(index))));
  });
  const links = scenarios.map((number) => `S${number}`).join(", ");
  const svg = `<svg viewBox="0 0 ${WIDTH} ${height}" role="img"><title>${escaped(title)}</title><desc>${escaped(description)}</desc>${parts.join("")}</svg>`;
  const caption = `${escaped(description)} Tests: scenarios ${links} of <a href="/docs/reliability#scenarios">Reliability</a>.`;
  return `<figure class="picture">${svg}<figcaption>${caption}</figcaption></figure>`;
}

/** The text is in the gap beside the sender, so that it covers no bar. */
function message({ from, to, text: content, lost, late }, x, y) {
  const way = to > from ? 1 : -1;
  const start = x(from) + (way * BAR) / 2;
  const full = x(to) - (way * BAR) / 2;
  const end = lost ? start + (full - start) * 0.6 : full;
  const kind = lost || late ? "message lost" : "message";
  const tip = `<path class="${kind}" d="M${end - way * 6} ${y - 4}L${end} ${y}L${end - way * 6} ${y + 4}"/>`;
  const cross = `<path class="${kind}" d="M${end - 4} ${y - 4}L${end + 4} ${y + 4}M${end - 4} ${y + 4}L${end + 4} ${y - 4}"/>`;
  return [line(kind, start, y, end, y), lost ? cross : tip, text("label", x(from) + (way * (x(1) - x(0))) / 2, y - 7, content)];
}

/** The text is beside the party's line, on the side with more room. */
function event({ column, text: content, bad }, x, y, count) {
  const isLeft = column < count - 1;
  const dot = `<circle class="event${bad ? " bad" : ""}" cx="${x(column)}" cy="${y}" r="5"/>`;
  return [dot, text(`label ${isLeft ? "start" : "end"}`, x(column) + (isLeft ? 12 : -12), y + 4, content)];
}

function line(kind, x1, y1, x2, y2) {
  return `<line class="${kind}" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;
}

function text(kind, x, y, content) {
  return `<text class="${kind}" x="${x}" y="${y}">${escaped(content)}</text>`;
}

function escaped(content) {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
