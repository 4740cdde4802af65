/** The page: starts a run, draws it while it lasts, and writes its log. */

import { BreakRun } from "./break-run.js";
import { COUNTS, PERMITS } from "./kinds.js";
import { LockRun } from "./lock-run.js";
import { Run } from "./run.js";
import { setText, Timeline } from "./timeline.js";
import { secondsText, tokenText } from "./labels.js";

const get = (id) => document.getElementById(id);
const faults = [...document.querySelectorAll("[data-fault]")];
const choices = [...document.querySelectorAll("input[type=radio]")];
const chosen = (name) => choices.find((input) => input.name === name && input.checked).value;
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

/** The interval of redraws in milliseconds if the user prefers reduced motion. */
const REDUCED_MOTION_MS = 500;

let run;
let timeline;

function prepare() {
  const kind = chosen("kind");
  run?.dispose();
  run = newRun(kind);
  // Parts of the page that belong to some kinds only.
  for (const part of document.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind);
  timeline = new Timeline(run);
  run.addEventListener("note", ({ detail }) => log(detail));
  run.addEventListener("change", draw);
  setControls();
  draw();
}

function newRun(kind) {
  const lease = new URLSearchParams(location.search).get("lease");
  if (kind === "break") return new BreakRun(lease === null ? undefined : Number(lease) * 1000);
  return kind === "lock" ? new LockRun(Number(chosen("contenders"))) : new Run(kind);
}

async function start() {
  if (isRunning()) return;
  // A run starts only once; the one on the page may be over.
  if (run.started) prepare();
  clearLog();
  const ended = run.start();
  setControls();
  get("stage").scrollIntoView({ block: "nearest" });
  animate();
  await ended;
  setControls();
  draw();
}

/** Whether the run is under way, up to the arrival of Redis' verdict. */
function isRunning() {
  return run.started && run.verdict === null;
}

function setControls() {
  const button = get("start");
  button.ariaDisabled = String(isRunning());
  button.textContent = isRunning() ? "Running…" : run.started ? "Start again" : "Start";
  for (const input of choices) input.disabled = isRunning();
  drawFaults();
}

function animate() {
  if (!isRunning()) return;
  draw();
  if (reducedMotion.matches) setTimeout(animate, REDUCED_MOTION_MS);
  else requestAnimationFrame(animate);
}

function draw() {
  timeline.draw();
  drawFacts();
  drawFaults();
  drawSummary();
  drawVerdict();
}

function drawFacts() {
  if (run.kind === "lock") return drawLockFacts();
  const { contenders, inside, openedAt } = run;
  const waiting = contenders.filter(({ state }) => state === "waiting").length;
  setText(get("fact-inside"), run.kind === "permits" ? `${inside.length} of ${PERMITS}` : String(inside.length));
  get("fact-inside").dataset.tone = inside.length > 0 ? "good" : "plain";
  setText(get("fact-waiting"), String(waiting));
  const left = COUNTS - contenders.filter(({ counted }) => counted !== null).length;
  setText(get("fact-gate"), openedAt === null ? `closed, ${left} to count` : "open");
  get("fact-gate").dataset.tone = openedAt === null ? "bad" : "good";
}

/** A fault is possible while a client holds the lock, and one outage at a time. */
function drawFaults() {
  for (const button of faults) {
    const isPossible = run instanceof BreakRun && isRunning() && run.canBreak && !run.isRedisDown;
    button.ariaDisabled = String(!isPossible);
  }
}

function drawLockFacts() {
  const { holder, newestToken } = run;
  const isDead = holder?.state === "killed";
  setText(get("fact-holder"), holder ? `${holder.name}${isDead ? ", dead" : ""}` : "none");
  get("fact-holder").dataset.tone = isDead ? "bad" : holder ? "good" : "plain";
  setText(get("fact-lease"), holder ? secondsText(Math.max(0, holder.leaseEnd - run.now())) : "none");
  setText(get("fact-token"), newestToken > 0 ? tokenText(newestToken) : "none yet");
  setText(get("fact-redis"), run.isRedisDown ? "down" : "up");
  get("fact-redis").dataset.tone = run.isRedisDown ? "bad" : "good";
}

/** Draws what Redis recorded of the whole run. */
function drawSummary() {
  const { verdict } = run;
  const finding = get("finding");
  finding.dataset.kept = verdict === null ? "open" : String(verdict.isKept);
  setText(finding, verdict?.sentence ?? (run.started ? "Redis records the run." : "The result appears here at the end."));
}

/** Draws the outcome of the last write of a dead holder. */
function drawVerdict() {
  const panel = get("verdict");
  const last = run.contenders.filter(({ lateWrite }) => lateWrite).sort((a, b) => b.lateWrite.at - a.lateWrite.at)[0];
  const wasHidden = panel.hidden;
  panel.hidden = !last;
  if (!last) return;
  const { accepted, newest } = last.lateWrite;
  panel.dataset.accepted = accepted;
  setText(get("verdict-title"), `The write of ${last.name} was ${accepted ? "accepted" : "refused"}`);
  setText(get("verdict-token"), tokenText(last.token));
  setText(get("verdict-newest"), tokenText(newest));
  setText(get("verdict-why"), accepted
    ? "No newer token has been written, so this write overwrites nothing newer."
    : "Its token is older than the newest one that the store has seen, so it cannot overwrite a later write.");
  if (wasHidden) panel.scrollIntoView({ block: "nearest" });
}

function clearLog(isEmpty = false) {
  get("log").replaceChildren();
  get("log-empty").hidden = !isEmpty;
}

function log({ at, text, tone }) {
  const line = document.createElement("li");
  line.dataset.tone = tone;
  const time = document.createElement("time");
  time.textContent = secondsText(at);
  const message = document.createElement("span");
  message.textContent = text;
  line.append(time, message);
  get("log").append(line);
  get("log-view").scrollTop = get("log-view").scrollHeight;
}

get("start").addEventListener("click", start);
for (const button of faults) {
  button.addEventListener("click", () => {
    if (button.ariaDisabled !== "true") run[button.dataset.fault]();
  });
}
for (const input of choices) {
  input.addEventListener("change", () => {
    clearLog(true);
    prepare();
  });
}
// A user who looks back in the timeline wants to stay there.
for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
  get("scroller").addEventListener(kind, ({ target }) => {
    if (!(target instanceof HTMLButtonElement)) timeline.follow = false;
  }, { passive: true });
}
prepare();
