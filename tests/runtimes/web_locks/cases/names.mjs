/** The assertions of WPT's `resource-names.https.any.js`, and the limits of names in Redis. */

import { rejects, same } from "../../check.mjs";
import { rejectsDom } from "../world.mjs";

const codePoints = (text) => [...text].map((unit) => `0x${unit.charCodeAt(0).toString(16).toUpperCase()}`).join(" ");
const named = (text) => async ({ locks }) => same(await locks.request(text, ({ name }) => name === text), true, "the name is that of the request");
const odd = ["", "abc\x00def", "\uD800", "\uDC00", "\uDC00\uD800", "\uFFFF"];

export const resourceNames = {
  ...Object.fromEntries(odd.map((text) => [`DOMString: ${codePoints(text)}`, named(text)])),

  async "Resource names that are not valid UTF-16 are not mangled"({ locks }) {
    const names = await locks.request("\uD800", (first) => locks.request("\uFFFD", (second) => [first.name === "\uD800", second.name === "\uFFFD"]));
    same(names, [true, true]);
  },

  async 'Names cannot start with "-"'({ locks }) {
    for (const name of ["-", "-foo"]) await rejectsDom(locks.request(name, () => {}), "NotSupportedError");
    same(await locks.request("x-anything", ({ name }) => name), "x-anything");
  },
};

export const ourNames = {
  async "names with braces, percent signs and line breaks are different locks, and query returns them"({ locks }) {
    const names = ["{a}", "a", "%007ba%007d", "a}{", "%", "a\nb", "é", "e\u0301", " "];
    const request = ([first, ...others], work) => (first === undefined ? work() : locks.request(first, () => request(others, work)));
    const { held } = await request(names, () => locks.query());
    same(held.map(({ name }) => name).sort(), [...names].sort());
  },

  async "namespaces are separate, whatever characters they have"(world) {
    const id = crypto.randomUUID();
    const namespaces = [id, `{${id}}`, `%${id}`, `${id}\uD800`, `${id}:a`];
    const managers = namespaces.map((namespace) => world.other({ namespace }));
    const request = ([first, ...others], work) => (first ? first.request("a", () => request(others, work)) : work());
    const states = await request(managers, () => Promise.all(managers.map((manager) => manager.query())));
    same(states.map(({ held }) => held.map(({ name }) => name)), namespaces.map(() => ["a"]));
  },

  async "a name that is too long for Redis is refused"({ locks, edgelatch }) {
    await rejects(locks.request("n".repeat(500), () => {}), edgelatch.InvalidOptionError, { option: "name" });
  },
};
