/**
 * Starts Firefox. Puppeteer drives the release that users have; Playwright drives only a build of
 * its own.
 */

import { tool } from "./browser.mjs";
import { required } from "./project.mjs";

export async function launchFirefox() {
  const { default: puppeteer } = tool("puppeteer-core");
  const options = { browser: "firefox", executablePath: required("FIREFOX"), headless: true };
  // No time ends a browser that is slow.
  const browser = await puppeteer.launch({ ...options, timeout: 0, protocolTimeout: 0 });
  return { newContext: () => browser.createBrowserContext(), close: () => browser.close() };
}
