/**
 * A page of Chromium that playwright does not keep awake: playwright marks all its own pages as
 * visible, and a visible page is never frozen.
 */

import { serve, ways } from "./browser.mjs";
import { until } from "./check.mjs";
import { newProject } from "./project.mjs";

/** Opens a page that holds a lock on command. */
export async function openLonePage(browser, { url, token }) {
  const server = await serve(await newProject(), { ...ways[0], program: "idle.mjs" }, url);
  const address = `${server.url}/page.html?${new URLSearchParams({ url, token })}`;
  const session = await browser.newBrowserCDPSession();
  const { browserContextId } = await session.send("Target.createBrowserContext");
  const { targetId } = await session.send("Target.createTarget", { url: address, browserContextId });
  const { sessionId } = await session.send("Target.attachToTarget", { targetId, flatten: false });
  const pending = new Map();
  session.on("Target.receivedMessageFromTarget", ({ message }) => {
    const { id, ...response } = JSON.parse(message);
    pending.get(id)?.(response);
  });
  const send = async (method, params = {}) => {
    const id = pending.size + 1;
    const { promise, resolve } = Promise.withResolvers();
    pending.set(id, resolve);
    await session.send("Target.sendMessageToTarget", { sessionId, message: JSON.stringify({ id, method, params }) });
    const { result, error } = await promise;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  };
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.text);
    return result.value;
  };
  /** Calls a function of the page once the page has defined it, and returns its result. */
  const call = async (name, ...values) => {
    const isDefined = () => evaluate(`typeof globalThis.${name} === "function"`).catch(() => false);
    await until(isDefined, `the page has ${name}`);
    return evaluate(`globalThis.${name}(${values.map((value) => JSON.stringify(value)).join()})`);
  };
  const moveToBackground = async () => {
    const other = await session.send("Target.createTarget", { url: "about:blank", browserContextId });
    await session.send("Target.activateTarget", { targetId: other.targetId });
  };
  const bringToFront = () => session.send("Target.activateTarget", { targetId });
  const close = async () => {
    await session.send("Target.disposeBrowserContext", { browserContextId });
    server.close();
  };
  return { send, evaluate, call, close, moveToBackground, bringToFront };
}

/**
 * Freezes a page as browsers freeze a page in the background; returns a function that resumes it.
 */
export async function freeze({ send }) {
  await send("Page.setWebLifecycleState", { state: "frozen" });
  return () => send("Page.setWebLifecycleState", { state: "active" });
}

/**
 * Brings another tab in front of the page, as users do; returns a function that brings the page
 * back.
 */
export async function hide({ moveToBackground, bringToFront }) {
  await moveToBackground();
  return bringToFront;
}

/**
 * Navigates to another address; returns a function that navigates back. The session is attached to
 * the other page first: until then Chromium refuses to navigate.
 */
export async function leave({ send, evaluate }) {
  const { currentIndex, entries } = await send("Page.getNavigationHistory");
  await send("Page.navigate", { url: "about:blank" });
  await until(() => evaluate('location.href === "about:blank"').catch(() => false), "the other page");
  return () => send("Page.navigateToHistoryEntry", { entryId: entries[currentIndex].id });
}
