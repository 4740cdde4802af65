/** Draws a run: one lane for each contender. Places are seconds in CSS variables; the style sheet scales them. */

import { tokenText } from "./run.js";

/** Room ahead of now, in which the rest of a lease can be seen. */
const AHEAD_SECONDS = 3.5;

/** Room after the end of a run that is over. */
const AFTER_SECONDS = 0.5;

/** What the axis shows of itself where there is room. */
const AXIS_SECONDS = 40;

const AXIS_STEP_SECONDS = 2;

/** Digits of a token that there is room for everywhere. It counts microseconds: these differ for a quarter of an hour. */
const TOKEN_END_DIGITS = 9;

/** The timeline of one run. */
export class Timeline {
  #run;
  #actions;
  #scroller = document.getElementById("scroller");
  #list = document.getElementById("lanes");
  #axis = document.getElementById("axis");
  #lanes;

  /** `actions`: what the buttons of a lane do, `kill(contender)` and `writeLate(contender)`. */
  constructor(run, actions) {
    this.#run = run;
    this.#actions = actions;
    this.#lanes = run.contenders.map((contender) => this.#lane(contender));
    this.#list.replaceChildren(...this.#lanes.map(({ element }) => element));
    this.#axis.replaceChildren();
    this.follow = true;
  }

  /** Draws the present moment. */
  draw() {
    const now = this.#seconds(this.#now());
    this.#scroller.style.setProperty("--now", now);
    const isOver = this.#run.endedAt !== null;
    const span = now + (isOver ? AFTER_SECONDS : AHEAD_SECONDS);
    this.#scroller.style.setProperty("--span", span);
    this.#scroller.dataset.over = String(isOver);
    this.#scroller.dataset.running = String(this.#run.started && !isOver);
    this.#extendAxis(Math.max(span, AXIS_SECONDS));
    for (const lane of this.#lanes) this.#drawLane(lane);
    if (this.follow && this.#run.started) this.#scroller.scrollLeft = this.#scroller.scrollWidth;
  }

  #now() {
    return this.#run.endedAt ?? this.#run.now();
  }

  #seconds(moment) {
    const start = this.#run.startedAt;
    return start === null ? 0 : Math.max(0, (moment - start) / 1000);
  }

  #lane(contender) {
    const element = document.getElementById("lane").content.firstElementChild.cloneNode(true);
    const find = (name) => element.querySelector(`.${name}`);
    const lane = {
      contender,
      element,
      state: find("lane-state"),
      tokenStart: find("token-start"),
      tokenEnd: find("token-end"),
      action: find("lane-action"),
      track: find("track"),
      parts: new Map(),
    };
    element.dataset.worker = contender.number;
    find("lane-name").textContent = contender.name;
    lane.action.addEventListener("click", () => {
      if (lane.action.ariaDisabled === "true") return;
      if (contender.wasKilled) this.#actions.writeLate(contender);
      else this.#actions.kill(contender);
    });
    return lane;
  }

  #drawLane(lane) {
    const { contender, element } = lane;
    const now = this.#now();
    element.dataset.state = contender.state;
    setText(lane.state, describe(contender, now));
    const [tokenStart, tokenEnd] = tokenParts(contender.token);
    setText(lane.tokenStart, tokenStart);
    setText(lane.tokenEnd, tokenEnd);
    this.#drawAction(lane);
    if (contender.waitFrom !== null) {
      this.#bar(lane, "wait", contender.waitFrom, contender.heldFrom ?? contender.failedAt ?? now);
    }
    if (contender.heldFrom === null) return;
    const hold = this.#bar(lane, "hold", contender.heldFrom, contender.heldTo ?? now);
    hold.dataset.token = contender.token;
    setText(hold.firstElementChild, `…${tokenEnd}`);
    this.#drawLease(lane, now);
    for (const [index, moment] of contender.renewals.entries()) this.#mark(lane, `renewal-${index}`, "renewal", moment);
    if (contender.killedAt !== null) this.#mark(lane, "kill", "kill", contender.killedAt);
    if (contender.lateWrite !== null) {
      const mark = this.#mark(lane, "late", "late", Math.min(contender.lateWrite.at, now));
      setText(mark, contender.lateWrite.accepted ? "accepted" : "refused");
    }
  }

  /** The rest of the lease: ahead of a living holder, behind the death of a killed one, nothing after a release. */
  #drawLease(lane, now) {
    const { contender } = lane;
    const isAlive = contender.state === "holding" && contender.heldTo === null;
    if (!isAlive && !contender.wasKilled) {
      lane.parts.get("lease")?.remove();
      lane.parts.delete("lease");
      return;
    }
    const from = isAlive ? now : contender.killedAt;
    const lease = this.#bar(lane, "lease", from, Math.max(from, contender.leaseEnd));
    const left = contender.leaseEnd - now;
    setText(lease.firstElementChild, contender.state === "killed" && left > 0 ? secondsText(left) : "");
  }

  #drawAction({ contender, action }) {
    const isHolding = contender.state === "holding" && contender.heldTo === null;
    action.hidden = !isHolding && !contender.wasKilled;
    if (action.hidden) return;
    const canWrite = this.#run.canWriteLate(contender);
    action.ariaDisabled = String(!isHolding && !canWrite);
    action.dataset.kind = isHolding ? "kill" : "write";
    if (isHolding) return label(action, "Kill", `Kill ${contender.name}`);
    if (contender.lateWrite) return label(action, contender.lateWrite.accepted ? "Accepted" : "Refused");
    label(action, "Let it write", `Let the dead ${contender.name} write`);
  }

  #bar(lane, kind, from, to) {
    const bar = this.#part(lane, kind, `bar ${kind}`);
    // The moments themselves, for whoever checks the drawing.
    bar.dataset.from = from;
    bar.dataset.to = to;
    bar.style.setProperty("--from", this.#seconds(from));
    bar.style.setProperty("--to", this.#seconds(to));
    return bar;
  }

  #mark(lane, key, kind, moment) {
    const mark = this.#part(lane, key, `mark ${kind}`);
    mark.style.setProperty("--from", this.#seconds(moment));
    return mark;
  }

  #part(lane, key, classes) {
    let found = lane.parts.get(key);
    if (!found) {
      found = part(classes);
      lane.parts.set(key, found);
      // The text of a bar is a child of its own: the style sheet shows it where it fits whole.
      if (classes.startsWith("bar")) found.append(document.createElement("span"));
      lane.track.append(found);
    }
    return found;
  }

  #extendAxis(span) {
    for (let second = this.#axis.childElementCount * AXIS_STEP_SECONDS; second <= span; second += AXIS_STEP_SECONDS) {
      const tick = part("tick");
      tick.style.setProperty("--from", second);
      tick.textContent = `${second} s`;
      this.#axis.append(tick);
    }
  }
}

function describe(contender, now) {
  const left = secondsText(Math.max(0, (contender.leaseEnd ?? 0) - now));
  switch (contender.state) {
    case "ready":
      return "Ready";
    case "waiting":
      return "Waiting";
    case "holding":
      return contender.heldTo === null ? "Holds the lock" : "Releasing";
    case "killed":
      return `Dead, lease ${left}`;
    case "expired":
      return "Dead, lease over";
    case "released":
      return "Done";
    case "lost":
      return "Lost its lease";
    default:
      return "Failed";
  }
}

/** A token as text, cut in front of the digits that there is room for everywhere. */
function tokenParts(token) {
  if (token === null) return ["", ""];
  const digits = String(token);
  return [`${tokenText(digits.slice(0, -TOKEN_END_DIGITS))}\u202f`, tokenText(digits.slice(-TOKEN_END_DIGITS))];
}

export function secondsText(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

function label(button, text, spoken = text) {
  setText(button, text);
  if (button.ariaLabel !== spoken) button.ariaLabel = spoken;
}

/** Leaves the text alone when it is the same, so that a selection in it stays. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function part(classes) {
  const element = document.createElement("div");
  element.className = classes;
  return element;
}
