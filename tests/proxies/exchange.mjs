/**
 * Requests as bytes, in forms that two parsers could interpret differently, and a strict parser of
 * the responses.
 */

import { connect } from "node:net";

import { CLOSED, TOKEN } from "./servers.mjs";

/** A test that takes longer hangs. This is no statement about how long it should take. */
const HANG_MS = 60_000;

const head = (line, headers) => [line, "Host: gateway", `Authorization: Bearer ${TOKEN}`, ...headers, "", ""].join("\r\n");

/** A command as a request, with these headers and its length. */
export function post(words, ...headers) {
  const body = JSON.stringify(words);
  return `${head("POST / HTTP/1.1", [...headers, `Content-Length: ${body.length}`])}${body}`;
}

/**
 * Requests whose end depends on the parser. After one of the ends comes a second request, which the
 * proxy refuses if it parses it.
 */
export function ambiguous() {
  const ends = `0\r\n\r\n${head(`GET ${CLOSED}/executed HTTP/1.1`, [])}`;
  const whole = `Content-Length: ${ends.length}`;
  const chunked = "Transfer-Encoding: chunked";
  const of = (headers, body = ends, line = "POST / HTTP/1.1") => head(line, headers) + body;
  return {
    "both lengths": of([whole, chunked]),
    "both lengths, chunked first": of([chunked, whole]),
    "a space before the colon": of([whole, "Transfer-Encoding : chunked"]),
    "an unknown encoding": of([whole, "Transfer-Encoding: xchunked"]),
    "chunked twice": of([chunked, chunked]),
    "chunked, chunked": of(["Transfer-Encoding: chunked, chunked"]),
    "identity and chunked": of([whole, "Transfer-Encoding: identity", chunked]),
    "a vertical tab": of([whole, "Transfer-Encoding:\u000bchunked"]),
    "a folded encoding": of([whole, "Transfer-Encoding:\r\n chunked"]),
    "an encoding folded into another header": of([whole, "X: y\r\n Transfer-Encoding: chunked"]),
    "two lengths": of([whole, "Content-Length: 5"]),
    "two lengths, the short one first": of(["Content-Length: 5", whole]),
    "a list of lengths": of([`Content-Length: 5, ${ends.length}`]),
    "a length with a sign": of([`Content-Length: +${ends.length}`]),
    "a negative length": of(["Content-Length: -1"]),
    "a length in hexadecimal": of(["Content-Length: 0x5"]),
    "an empty length": of(["Content-Length:"]),
    "a bare line feed behind an encoding": of([whole, `X: y\n${chunked}`]),
    "a size with a sign": of([chunked], `+8\r\n["PING"]\r\n${ends}`),
    "a size in 0x": of([chunked], `0x8\r\n["PING"]\r\n${ends}`),
    "a size beyond 64 bits": of([chunked], `10000000000000008\r\n["PING"]\r\n${ends}`),
    "a size with a bare line feed": of([chunked], `8\n["PING"]\r\n${ends}`),
    "chunks in HTTP/1.0": of([chunked], ends, "POST / HTTP/1.0"),
    "a length of GET": of([whole], ends, "GET /ping HTTP/1.1"),
    "a request to another host": of([whole], ends, "POST http://other.example/ HTTP/1.1"),
  };
}

/** The body `["PING"]` in chunks with everything that HTTP allows in chunks. */
export const allowedChunks = head("POST / HTTP/1.1", ["Transfer-Encoding: chunked", "Connection: close"])
  + '3;name=value;other="quoted\\" text"\r\n["P\r\n5;x\r\nING"]\r\n0;last\r\nTrailer: value\r\n\r\n';

/** Sends bytes on one connection; returns the responses until the other side closes it. */
export async function talk(port, bytes) {
  const socket = connect(port, "127.0.0.1");
  const chunks = [];
  await new Promise((resolve, reject) => {
    socket.setTimeout(HANG_MS, () => reject(new Error(`no end after ${Buffer.concat(chunks)}`)));
    socket.on("data", (chunk) => chunks.push(chunk));
    // A reset ends the responses as a close does.
    socket.on("error", resolve);
    socket.on("close", resolve);
    socket.write(bytes, "latin1");
  });
  socket.destroy();
  return answers(Buffer.concat(chunks).toString("latin1"));
}

function answers(text) {
  const found = [];
  let rest = text;
  while (rest !== "") {
    const [whole, status, headers] = rest.match(/^HTTP\/1\.[01] (\d{3}) [^\r\n]*\r\n((?:[\w-]+: [^\r\n]*\r\n)*)\r\n/) ?? [];
    if (!whole) throw new Error(`no answer: ${JSON.stringify(rest)} in ${JSON.stringify(text)}`);
    const field = (name) => headers.match(new RegExp(`^${name}: (.*)\\r$`, "im"))?.[1];
    rest = rest.slice(whole.length);
    let body;
    if (field("transfer-encoding") === "chunked") [body, rest] = unchunk(rest);
    else {
      const length = Number(field("content-length") ?? rest.length);
      [body, rest] = [rest.slice(0, length), rest.slice(length)];
    }
    found.push({ status: Number(status), body });
  }
  return found;
}

function unchunk(text) {
  let [body, rest] = ["", text];
  for (;;) {
    const [line, size] = rest.match(/^([\da-f]+)\r\n/i) ?? [];
    if (!line) throw new Error(`no chunk: ${JSON.stringify(rest)}`);
    const length = Number.parseInt(size, 16);
    body += rest.slice(line.length, line.length + length);
    rest = rest.slice(line.length + length + 2);
    if (length === 0) return [body, rest];
  }
}
