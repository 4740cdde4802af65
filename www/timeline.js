/**
 * Draws a run: one lane for each contender. Places are seconds in CSS variables; the style sheet
 * scales them.
 */

import { describe, secondsText, tokenParts } from "./labels.js";

/** The seconds after the present that are drawn, so that the rest of a lease is visible. */
const AHEAD_SECONDS = 3.5;

/** The seconds after the end of a finished run that are drawn. */
const AFTER_SECONDS = 0.5;

/** The seconds that the axis shows if there is room. */
const AXIS_SECONDS = 40;

const AXIS_STEP_SECONDS = 2;

/** The timeline of one run. */
export class Timeline {
  #run;
  #scroller = document.getElementById("scroller");
  #list = document.getElementById("lanes");
  #axis = document.getElementById("axis");
  #lanes;

  constructor(run) {
    this.#run = run;
    this.#lanes = run.contenders.map((contender) => this.#lane(contender));
    this.#list.replaceChildren(...this.#lanes.map(({ element }) => element));
    this.#axis.replaceChildren();
    this.#scroller.scrollLeft = 0;
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
    const { openedAt } = this.#run;
    this.#scroller.dataset.open = String(openedAt !== null);
    if (openedAt !== null) this.#scroller.style.setProperty("--opened", this.#seconds(openedAt));
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
      const action = this.#run.actionOn(contender);
      if (action?.isReady) action.act();
    });
    return lane;
  }

  #drawLane(lane) {
    const { contender, element } = lane;
    const now = this.#now();
    element.dataset.state = contender.state;
    setText(lane.state, describe(contender, this.#run, now));
    const isFenced = this.#run.kind === "lock";
    const [tokenStart, tokenEnd] = tokenParts(isFenced ? contender.token : null);
    setText(lane.tokenStart, tokenStart);
    setText(lane.tokenEnd, tokenEnd);
    this.#drawAction(lane);
    if (contender.waitFrom !== null) {
      this.#bar(lane, "wait", contender.waitFrom, contender.holds[0]?.from ?? contender.endedAt ?? now);
    }
    for (const [index, hold] of contender.holds.entries()) this.#drawHold(lane, index, hold, now);
    if (isFenced && contender.hold) this.#drawLease(lane, now);
    this.#drawMarks(lane, now);
  }

  #drawHold(lane, index, hold, now) {
    const { contender } = lane;
    const bar = this.#bar(lane, "hold", hold.from, hold.to ?? now, `hold-${index}`);
    bar.dataset.as = hold.as;
    if (this.#run.kind === "lock") bar.dataset.token = contender.token;
    setText(bar.firstElementChild, this.#run.labels.bar(contender, hold, this.#run));
  }

  #drawMarks(lane, now) {
    const { renewals, killedAt, queued, counted, lateWrite } = lane.contender;
    for (const [index, moment] of renewals.entries()) this.#mark(lane, `renewal-${index}`, "renewal", moment);
    if (killedAt !== null) this.#mark(lane, "kill", "kill", killedAt);
    if (queued) this.#mark(lane, "queued", "queued", queued.at);
    if (counted) setText(this.#mark(lane, "counted", "counted", counted.at), String(counted.left));
    if (lane.contender.state === "left") this.#mark(lane, "left", "left", lane.contender.endedAt);
    this.#drawFaults(lane, now);
    if (lateWrite === null) return;
    const mark = this.#mark(lane, "late", "late", Math.min(lateWrite.at, now));
    setText(mark, lateWrite.accepted ? "accepted" : "refused");
  }

  /** Draws what the user has broken, in a run of that kind. */
  #drawFaults(lane, now) {
    const { unanswered = [], frozen = null } = lane.contender;
    for (const [index, moment] of unanswered.entries()) this.#mark(lane, `unanswered-${index}`, "unanswered", moment);
    if (frozen !== null) this.#bar(lane, "frozen", frozen.from, frozen.to ?? now);
    for (const [index, { from, to }] of (this.#run.outages ?? []).entries()) this.#bar(lane, "outage", from, to ?? now, `outage-${index}`);
  }

  /**
   * Draws the rest of the lease: ahead of a living holder, behind the death of a killed one,
   * nothing after a release.
   */
  #drawLease(lane, now) {
    const { contender } = lane;
    if (!contender.isInside && !contender.wasKilled) {
      lane.parts.get("lease")?.remove();
      lane.parts.delete("lease");
      return;
    }
    const from = contender.isInside ? now : contender.killedAt;
    const lease = this.#bar(lane, "lease", from, Math.max(from, contender.leaseEnd));
    const left = contender.leaseEnd - now;
    setText(lease.firstElementChild, contender.state === "killed" && left > 0 ? secondsText(left) : "");
  }

  #drawAction({ contender, action: button }) {
    const action = this.#run.actionOn(contender);
    button.hidden = action === null;
    if (action === null) return;
    button.ariaDisabled = String(!action.isReady);
    button.dataset.kind = action.kind;
    setText(button, action.text);
    const spoken = action.spoken ?? action.text;
    if (button.ariaLabel !== spoken) button.ariaLabel = spoken;
  }

  #bar(lane, kind, from, to, key = kind) {
    const bar = this.#part(lane, key, `bar ${kind}`);
    // The exact times, for tests of the drawing.
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
      // The text of a bar is a child element: the style sheet shows it only if it fits.
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

/** Sets the text of an element, unless it is equal, so that a selection in it stays. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function part(classes) {
  const element = document.createElement("div");
  element.className = classes;
  return element;
}
