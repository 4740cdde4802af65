/**
 * A page of Chromium's that playwright does not keep awake: it tells every page of its own that it
 * is looked at, and a page that is looked at is never frozen.
 */

import { serve, ways } from "./browser.mjs";
import { until } from "./check.mjs";
import { newProject } from "./project.mjs";

/** A page that holds a lock when it is told to. */
export async function openLonePage(browser, { url, token }) {
  const server = await serve(await newProject(), { ...ways[0], program: "idle.mjs" }, url);
  const address = `${server.url}/page.html?${new URLSearchParams({ url, token })}`;
  const session = await browser.newBrowserCDPSession();
  const { browserContextId } = await session.send("Target.createBrowserContext");
  const { targetId } = await session.send("Target.createTarget", { url: address, browserContextId });
  const { sessionId } = await session.send("Target.attachToTarget", { targetId, flatten: false });
  const waiting = new Map();
  session.on("Target.receivedMessageFromTarget", ({ message }) => {
    const { id, ...answer } = JSON.parse(message);
    waiting.get(id)?.(answer);
  });
  const send = async (method, params = {}) => {
    const id = waiting.size + 1;
    const { promise, resolve } = Promise.withResolvers();
    waiting.set(id, resolve);
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
  /** What a function of the page's answers, once the page is there. */
  const call = async (name, ...values) => {
    const isThere = () => evaluate(`typeof globalThis.${name} === "function"`).catch(() => false);
    await until(isThere, `the page has ${name}`);
    return evaluate(`globalThis.${name}(${values.map((value) => JSON.stringify(value)).join()})`);
  };
  const behind = async () => {
    const other = await session.send("Target.createTarget", { url: "about:blank", browserContextId });
    await session.send("Target.activateTarget", { targetId: other.targetId });
  };
  const front = () => session.send("Target.activateTarget", { targetId });
  const close = async () => {
    await session.send("Target.disposeBrowserContext", { browserContextId });
    server.close();
  };
  return { send, call, close, behind, front };
}

/** Freezes a page as browsers do with one that nobody looks at; answers how to let it go on. */
export async function freeze({ send }) {
  await send("Page.setWebLifecycleState", { state: "frozen" });
  return () => send("Page.setWebLifecycleState", { state: "active" });
}

/** Shows another tab in front of it, as users do; answers how to look at it again. */
export async function hide({ behind, front }) {
  await behind();
  return front;
}

/** Goes somewhere else; answers how to come back. */
export async function leave({ send }) {
  const { currentIndex, entries } = await send("Page.getNavigationHistory");
  await send("Page.navigate", { url: "about:blank" });
  return () => send("Page.navigateToHistoryEntry", { entryId: entries[currentIndex].id });
}
