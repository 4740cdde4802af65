/** The changes to the output of wasm-bindgen, and the module as text. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { decode } from "../../pkg/decode.js";
import { encode } from "./encode.mjs";
import { finishGlue, shortNames } from "./glue.mjs";

test("common bytes are one letter and the other bytes two", () => {
  const bytes = Uint8Array.from([...Array(256).keys(), ...Array(100).fill(7)]);
  const { text, order } = encode(bytes);
  assert.ok(order.startsWith("07"));
  assert.equal(text.length, 100 + 87 + 2 * 169);
  assert.ok(text.endsWith(" ".repeat(100)));
});

test("the package decodes the bytes that were encoded", () => {
  for (const length of [0, 1, 1000]) {
    const bytes = Uint8Array.from({ length }, (_, index) => (index * index) % 256);
    const { text, order, size } = encode(bytes);
    assert.deepEqual(decode(text, order, size), bytes);
  }
});

test("hashes in names become numbers of the same length", () => {
  const glue = "imports.__wbg_abort_17cafbdd3728580a = __wbg_abort_17cafbdd3728580a; __wbindgen_0000000000000001; __wbg_to_00aafbdd3728580a";
  const expected = [["00aafbdd3728580a", "0".repeat(16)], ["17cafbdd3728580a", `${"0".repeat(15)}1`]];
  assert.deepEqual(shortNames(glue), expected);
});

test("glue without a text that has to change is an error", () => {
  assert.throws(() => finishGlue("wasm = instance.exports;\n", () => {}), /has no `/);
});
