/** The page: starts a run, draws it while it lasts, and writes its log. */

import { Run, tokenText } from "./run.js";
import { secondsText, setText, Timeline } from "./timeline.js";

const get = (id) => document.getElementById(id);
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

/** How often the drawing moves when the user asked for little motion. */
const CALM_MS = 500;

let run;
let timeline;

function prepare() {
  const count = Number(document.querySelector("input[name=contenders]:checked").value);
  run = new Run(count);
  timeline = new Timeline(run, {
    kill: (contender) => run.kill(contender),
    writeLate: async (contender) => {
      await run.writeLate(contender);
      get("verdict").scrollIntoView({ block: "nearest" });
    },
  });
  run.addEventListener("note", ({ detail }) => log(detail));
  run.addEventListener("change", draw);
  draw();
}

async function start() {
  if (isRunning()) return;
  // A run lives once; the one on the page may already be over.
  if (run.started) prepare();
  get("log").replaceChildren();
  get("log-empty").hidden = true;
  const over = run.start();
  setControls();
  get("stage").scrollIntoView({ block: "nearest" });
  animate();
  await over;
  setControls();
  draw();
}

function isRunning() {
  return run.started && run.endedAt === null;
}

function setControls() {
  const button = get("start");
  button.ariaDisabled = String(isRunning());
  button.textContent = isRunning() ? "Running…" : "Start again";
  for (const input of document.querySelectorAll("input[name=contenders]")) input.disabled = isRunning();
  get("hint").textContent = isRunning()
    ? "Kill the holder, and watch who takes over and when."
    : "Each one wants the lock for 4 seconds.";
}

function animate() {
  if (!isRunning()) return;
  draw();
  if (reducedMotion.matches) setTimeout(animate, CALM_MS);
  else requestAnimationFrame(animate);
}

function draw() {
  timeline.draw();
  drawFacts();
  drawVerdict();
}

function drawFacts() {
  const { holder, newestToken } = run;
  const isDead = holder?.state === "killed";
  setText(get("fact-holder"), holder ? `${holder.name}${isDead ? ", dead" : ""}` : "nobody");
  get("fact-holder").dataset.tone = isDead ? "bad" : holder ? "good" : "plain";
  setText(get("fact-lease"), holder ? secondsText(Math.max(0, holder.leaseEnd - run.now())) : "none");
  setText(get("fact-token"), newestToken > 0 ? tokenText(newestToken) : "none yet");
}

/** What became of the last write of a dead holder. */
function drawVerdict() {
  const written = run.contenders.filter(({ lateWrite }) => lateWrite !== null);
  const last = written.sort((a, b) => b.lateWrite.at - a.lateWrite.at)[0];
  const panel = get("verdict");
  panel.hidden = !last;
  if (!last) return;
  const { accepted, newest } = last.lateWrite;
  panel.dataset.accepted = accepted;
  setText(get("verdict-title"), `The write of ${last.name} was ${accepted ? "accepted" : "refused"}`);
  setText(get("verdict-token"), tokenText(last.token));
  setText(get("verdict-newest"), tokenText(newest));
  setText(get("verdict-why"), accepted
    ? "Nobody has written with a newer token, so nothing can be overwritten that it should not."
    : "Its token is older than one the store has seen, so it cannot overwrite the work of its successor.");
}

function log({ at, text, tone }) {
  const line = document.createElement("li");
  line.dataset.tone = tone;
  const time = document.createElement("time");
  time.textContent = secondsText(at);
  const words = document.createElement("span");
  words.textContent = text;
  line.append(time, words);
  get("log").append(line);
  get("log-view").scrollTop = get("log-view").scrollHeight;
}

get("start").addEventListener("click", start);
for (const input of document.querySelectorAll("input[name=contenders]")) input.addEventListener("change", prepare);
// Whoever looks back in the timeline wants to stay there.
for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
  get("scroller").addEventListener(kind, ({ target }) => {
    if (!(target instanceof HTMLButtonElement)) timeline.follow = false;
  }, { passive: true });
}
prepare();
