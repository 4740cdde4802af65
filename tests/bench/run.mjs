// The npm package beside @upstash/lock on @upstash/redis: requests, bytes, processor time, time to be ready. Run by
// `cargo xtask bench`, which starts the gateway. Asserts nothing: figures are for people to judge.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const STARTS = 21;
const NAMES = ["edgelatch", "upstash"];
const FLAGS = ["--expose-gc", "--experimental-import-meta-resolve", "--no-warnings"];
const MEASURE = fileURLToPath(new URL("measure.mjs", import.meta.url));

row("", "edgelatch", "@upstash/lock");
traffic();
cpu();
readiness();

function traffic() {
  const [ours, theirs] = NAMES.map((name) => measure(name, "traffic"));
  for (const [when, text] of [["first", "first "], ["later", "later "]]) {
    for (const what of ["acquire", "release"]) {
      const [a, b] = [ours[when][what], theirs[when][what]];
      row(`${text}${what}: requests`, a.requests, b.requests);
      row(`${text}${what}: bytes up`, a.up, b.up);
      row(`${text}${what}: bytes down`, a.down, b.down);
    }
  }
  const up = ({ later }) => later.acquire.up + later.release.up;
  const down = ({ later }) => later.acquire.down + later.release.down;
  row("pair: bytes up", up(ours), up(theirs));
  row("pair: bytes down", down(ours), down(theirs));
}

function cpu() {
  const figures = NAMES.map((name) => {
    const { rounds } = measure(name, "cpu");
    return {
      whole: median(rounds.map(({ pair }) => pair)),
      bare: median(rounds.map(({ bare }) => bare)),
      library: median(rounds.map(({ pair, bare }) => pair - bare)),
    };
  });
  row("CPU per pair, all (µs)", ...figures.map(({ whole }) => whole.toFixed(0)));
  row("CPU per pair, its requests by fetch alone (µs)", ...figures.map(({ bare }) => bare.toFixed(0)));
  row("CPU per pair, the library (µs)", ...figures.map(({ library }) => library.toFixed(0)));
}

function readiness() {
  const times = NAMES.map(() => []);
  // In turns, so that a slow moment of the machine does not hit one alone.
  for (let i = 0; i < STARTS; i += 1) {
    NAMES.forEach((name, index) => times[index].push(measure(name, "import").ms));
  }
  row(`import to ready, median of ${STARTS} (ms)`, ...times.map((each) => median(each).toFixed(1)));
  row("import to ready, least (ms)", ...times.map((each) => Math.min(...each).toFixed(1)));
}

function measure(name, kind) {
  const output = execFileSync(process.execPath, [...FLAGS, MEASURE, name, kind], { encoding: "utf8" });
  return JSON.parse(output);
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function row(what, ours, theirs) {
  console.log(`${what.padEnd(48)} ${String(ours).padStart(14)} ${String(theirs).padStart(14)}`);
}
