/** Statistics of figures, their format, and tables of them. */

/**
 * Returns the figure below which `part` of all figures are; the largest if there are few figures,
 * and NaN if there are none.
 */
export function percentile(values, part) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.trunc(sorted.length * part)] ?? sorted.at(-1) ?? Number.NaN;
}

/** Returns the median; of an even number of figures, the larger of the two in the middle. */
export const median = (values) => percentile(values, 0.5);

/** Formats a figure with about three significant digits; from 100 on, as a whole number. */
export function short(value) {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, "\u{202f}");
  return value.toFixed(size >= 10 ? 1 : size >= 0.1 ? 2 : 3);
}

/**
 * Rounds a figure to the digits that `short` shows or a few more, so that the recorded results do
 * not suggest a higher precision.
 */
const rounded = (value) => Number(value.toFixed(Math.abs(value) >= 100 ? 0 : 4));

/**
 * Returns a table. `id` names its files, `how` is the method with the number of measurements, and
 * the first of the `columns` is edgelatch's. A row is its name, its unit, and a figure for each
 * column.
 */
export function table(id, title, how, columns, rows) {
  return { id, title, how, columns, rows: rows.map(([what, unit, cells]) => ({ what, unit, cells: cells.map(rounded) })) };
}

/** Returns a description of each row that lacks figures. */
export function gaps({ columns, rows }) {
  if (rows.length === 0 || columns.length === 0) return ["it has no figures"];
  return rows.flatMap(({ what, cells }) => {
    const figures = cells.filter(Number.isFinite).length;
    return figures === columns.length && cells.length === figures ? [] : [`${what}: ${figures} figures of ${columns.length}`];
  });
}

/** Prints a table to the terminal. */
export function print({ title, how, columns, rows }) {
  console.log(`\n${title}\n(${how})\n`);
  const labels = rows.map(({ what, unit }) => `${what} (${unit})`);
  const first = Math.max(...labels.map(({ length }) => length));
  const line = (label, cells) =>
    console.log(`  ${label.padEnd(first)}  ${cells.map((cell, at) => cell.padStart(Math.max(columns[at].length, 9))).join("  ")}`);
  line("", columns);
  rows.forEach(({ cells }, at) => line(labels[at], cells.map(short)));
}

/** Returns the cell of a table in the results; an error names a part that is missing. */
export function cell(results, { table: id, row, unit, column }) {
  const found = results.tables.find((one) => one.id === id);
  const cells = found?.rows.find((one) => one.what === row && one.unit === unit)?.cells;
  const value = cells?.[found.columns.findIndex((name) => name.startsWith(column))];
  if (value === undefined || value === null) throw new Error(`results without ${id}, ${row}, ${unit}, ${column}`);
  return value;
}

/** Returns a value of the environment of the figures, such as the version of Node. */
export function machineOf(results, name) {
  const found = results.machine.find(([other]) => other === name);
  if (!found) throw new Error(`results without ${name}`);
  return found[1];
}
