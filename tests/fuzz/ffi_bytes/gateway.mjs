/**
 * A gateway that responds as an input chooses: correctly, wrongly, in part, with any bytes, or
 * never.
 */

import { readFileSync } from "node:fs";

const vectors = JSON.parse(readFileSync(new URL("../../vectors/upstash.json", import.meta.url), "utf8"));
/** Recorded responses of gateways. */
const RECORDED = vectors.conversations.flatMap(({ answers }) => answers).filter(({ body }) => typeof body === "string");
const CODES = [1, 1, 1, 2, 0, 3, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, 99];
const VALUES = ["1700000000000000", "1700000000000001", "1", "0", "", "9007199254740992", "1,1,1", "1,1,1,1,1", "null", '"x"', "{", "x"];
const FEW = new Set([204, 205, 304]);
const never = () => new Promise(() => {});

/** A script's reply; its echo is the first argument after the keys. */
const echo = (words) => words[3 + Number(words[2])];
const reply = (words, code, value, ms) => ({ result: [code, value, ms, 1_700_000_000_000, echo(words)] });

/** A correct gateway: it grants and releases everything. */
export const good = async (url, { body }) => {
  const words = JSON.parse(body);
  const all = url.endsWith("/pipeline") ? words : [words];
  const answers = all.map((words) => reply(words, 1, "1700000000000000", 30_000));
  return new Response(JSON.stringify(url.endsWith("/pipeline") ? answers : answers[0]));
};

export class Gateway {
  /** Whether it has granted anything. */
  hasGranted = false;
  #choices;

  constructor(choices) {
    this.#choices = choices;
  }

  fetch = (url, { body }) => {
    const choices = this.#choices;
    if (choices.left <= 0) return Promise.reject(new TypeError("no gateway answers"));
    if (url.includes("subscribe/")) return this.#stream(url);
    const kind = choices.byte() % 16;
    if (kind === 0) throw new TypeError("thrown on purpose");
    if (kind === 1) return Promise.reject(choices.value());
    if (kind === 2) return never();
    if (kind === 3) return choices.value();
    if (kind === 4) return this.#response(choices.bytes(200));
    if (kind === 5) return this.#response(new TextEncoder().encode(choices.one(RECORDED).body.replace("$echo", "00000000000000ff")));
    const answer = new TextEncoder().encode(JSON.stringify(this.#answer(JSON.parse(body), url)));
    // One byte of it is changed.
    if (kind === 6 && answer.length) answer[choices.byte() % answer.length] = choices.byte();
    if (kind === 7) return this.#response(answer.slice(0, choices.byte()));
    return kind === 8 ? this.#response(answer) : Promise.resolve(new Response(answer));
  };

  #answer(words, url) {
    const choices = this.#choices;
    const one = (words) => {
      if (!Array.isArray(words)) return { error: choices.text() };
      if (words[0] === "WAIT") return { result: choices.one([0, 1, "1", -1, null]) };
      if (choices.byte() % 8 === 0) return { error: choices.one(["NOSCRIPT x", "ERR x", "OOM x", "LOADING x", choices.text()]) };
      const code = choices.one(CODES);
      this.hasGranted ||= code === 1 || code === 2;
      return reply(words, code, choices.one(VALUES), choices.one([30_000, -1, -2, 0, 1, 2 ** 53]));
    };
    return url.endsWith("/pipeline") ? words.map(one) : one(words);
  }

  #response(bytes) {
    const choices = this.#choices;
    const status = 200 + choices.byte() * 2 - (choices.byte() % 2);
    const headers = choices.byte() % 4 ? {} : { "upstash-sync-token": "7" };
    if (status > 599 || status < 200) return { status, headers: new Headers(headers), body: new Response(bytes).body };
    return Promise.resolve(new Response(FEW.has(status) ? null : bytes, { status, headers }));
  }

  #stream(url) {
    const choices = this.#choices;
    const channel = decodeURIComponent(url.split("/").at(-1));
    const lines = [`data: subscribe,${channel},1\n\n`, `data: message,${channel},${choices.one(["0", "1", "30000002", "x", ""])}\n\n`];
    const pieces = [...lines.map((line) => new TextEncoder().encode(line)), choices.bytes(60)];
    const kind = choices.byte() % 6;
    if (kind === 0) return Promise.resolve(new Response("no", { status: 404 }));
    const body = new ReadableStream({
      pull(control) {
        const piece = pieces.shift();
        if (piece?.length) control.enqueue(piece);
        else if (kind < 4) control.close();
        else if (kind === 4) control.error(new TypeError("broken on purpose"));
        else return never();
      },
    });
    return Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }));
  }
}
