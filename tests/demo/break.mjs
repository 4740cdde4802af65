/** Tests the run in which a visitor breaks things: which client notices what. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { isOver, noSidewaysScroll, open, picture, VISITORS } from "./visit.mjs";

for (const visitor of VISITORS.slice(0, 2)) {
  test(`a lost answer is noticed, and the request is repeated with one effect (${visitor.name})`, async () => {
    const { page, log, end } = await begin(visitor);
    await breakIt(page, "Lose an answer");
    await log(/^The gateway did what Worker \d requested, and the answer is lost\.$/);
    await log(/^Worker \d noticed after \d+\.\d s, and repeats the request\.$/);
    await page.locator(".mark.unanswered").waitFor();
    assert.match(await isOver(page), /^3 clients held the lock: .*no older token has overwritten a newer one\.$/);
    await finish(page, `${visitor.name}-lost-answer`);
    await end();
  });

  test(`a frozen holder notices its loss when it runs again, and its write is refused (${visitor.name})`, async () => {
    const { page, log, end } = await begin(visitor);
    await breakIt(page, "Freeze the holder");
    await log(/^Worker \d is frozen and notices nothing\.$/);
    await log(/^Worker \d notices that its lease is lost: expired\.$/);
    await page.getByRole("region", { name: /^The write of Worker \d was refused$/ }).waitFor();
    assert.match(await isOver(page), /Worker \d noticed \d+\.\d s after Worker \d had the lock; no older token/);
    const names = await lines(page);
    const [frozen] = /Worker \d/.exec(names.find((line) => line.includes("is frozen")));
    const lost = names.findIndex((line) => line.startsWith(`${frozen} notices that its lease is lost`));
    const taken = names.findIndex((line) => /^Worker \d holds the lock/.test(line) && !line.startsWith(frozen));
    assert.ok(taken < lost, "the next client had the lock before");
    await finish(page, `${visitor.name}-frozen`);
    await end();
  });
}

test("when Redis is killed, its holder notices the loss, and the next one has a higher token", async () => {
  const { page, log, end } = await begin(VISITORS[0], isOfAnOutage);
  await breakIt(page, "Kill Redis");
  await page.locator("#fact-redis").getByText("down").waitFor();
  await log(/^Redis is back, empty\.$/);
  await log(/^Worker \d notices that its lease is lost: (gone|expired)\.$/);
  const verdict = await isOver(page);
  assert.match(verdict, /^3 clients held the lock: .*no older token has overwritten a newer one\.$/);
  assert.equal(await page.locator("#fact-redis").innerText(), "up");
  await finish(page, "killed-redis");
  await end();
});

/** Whether the browser reports a response that an outage explains. */
function isOfAnOutage(text) {
  return /status of 50[0-9]/.test(text) || /net::ERR_/.test(text);
}

/**
 * Starts a run, with a lease that a slow machine renews in time. `log` waits for a line of its log.
 */
async function begin(visitor, isExpected) {
  const visit = await open(visitor, isExpected, "/?lease=15");
  const { page } = visit;
  await page.getByRole("radio", { name: "Break it" }).check();
  await noSidewaysScroll(page);
  await page.getByRole("button", { name: "Start" }).press("Enter");
  await page.locator(".lane[data-state=holding]").first().waitFor();
  return { ...visit, log: (text) => page.getByRole("log").getByText(text).first().waitFor() };
}

/** Breaks the holder, when there is one, by keyboard. */
async function breakIt(page, name) {
  await page.locator("[data-fault][aria-disabled=false]").first().waitFor();
  await page.getByRole("button", { name }).press("Enter");
}

async function lines(page) {
  return page.getByRole("log").locator("li span").allInnerTexts();
}

async function finish(page, name) {
  await noSidewaysScroll(page);
  await picture(page, `break-${name}`);
}
