/**
 * `node glue.mjs <folder> <module>`: finishes the output of wasm-bindgen and wasm-opt in `pkg/wasm`
 * of the module `edgelatch` or `testing`. The glue imports the package's own scripts, the hashes in
 * its names become numbers, and the module is written as text too.
 */

import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

import { moduleOf } from "./encode.mjs";

/** The changes to the glue of each module. */
const CHANGES = [
  // Created at first use: an import never fails in a test environment that has none of these.
  [
    "let cachedTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });\ncachedTextDecoder.decode();",
    "let cachedTextDecoder;",
  ],
  [
    "    return cachedTextDecoder.decode(bytes);",
    "    cachedTextDecoder ??= new TextDecoder('utf-8', { ignoreBOM: true });\n    return cachedTextDecoder.decode(bytes);",
  ],
  [
    "const cachedTextEncoder = new TextEncoder();",
    `let textEncoder;
const cachedTextEncoder = {
    encode: (text) => (textEncoder ??= new TextEncoder()).encode(text),
    encodeInto: (text, view) => (textEncoder ??= new TextEncoder()).encodeInto(text, view),
};`,
  ],
  // Every runtime of the package has it.
  [
    `if (!('encodeInto' in cachedTextEncoder)) {
    cachedTextEncoder.encodeInto = function (arg, view) {
        const buf = cachedTextEncoder.encode(arg);
        view.set(buf);
        return {
            read: arg.length,
            written: buf.length
        };
    };
}
`,
    "",
  ],
  // The package calls it in one way.
  [
    `    if (module !== undefined) {
        if (Object.getPrototypeOf(module) === Object.prototype) {
            ({module} = module)
        } else {
            console.warn('using deprecated parameters for \`initSync()\`; pass a single object instead')
        }
    }`,
    "    ({module} = module);",
  ],
  // Accepts a module that another realm has compiled.
  ["module instanceof WebAssembly.Module", "Object.prototype.toString.call(module) === '[object WebAssembly.Module]'"],
];

/** The changes to the glue of the clients alone. */
const CLIENT_CHANGES = [
  // After the module has failed, an object that is collected need not be freed.
  ["ptr => wasm.__wbg_handle_free(ptr, 1)", "ptr => { try { wasm.__wbg_handle_free(ptr, 1); } catch {} }"],
];

// The package frees no object: the engine lives as long as the program, and handles are collected.
for (const [name, free] of [["Engine", "engine"], ["Handle", "handle"]]) {
  CLIENT_CHANGES.push(
    [`if (Symbol.dispose) ${name}.prototype[Symbol.dispose] = ${name}.prototype.free;\n`, ""],
    [`    free() {\n        const ptr = this.__destroy_into_raw();\n        wasm.__wbg_${free}_free(ptr, 0);\n    }\n`, ""],
    [
      "    __destroy_into_raw() {\n        const ptr = this.__wbg_ptr;\n        this.__wbg_ptr = 0;\n" +
        `        ${name}Finalization.unregister(this);\n        return ptr;\n    }\n`,
      "",
    ],
  );
}

/**
 * Makes the glue import the package's own scripts: it imports copies from its own folders. `adopt`
 * receives the path of each script, which is put beside the glue.
 */
export function finishGlue(glue, adopt, changes = CHANGES) {
  const lines = glue.replace(/\n$/, "").split("\n").map((line) => {
    const [, path] = /^import .*?["'](.+?)["']/.exec(line) ?? [];
    if (!path) return line;
    adopt(path);
    return line.replaceAll(path, `./${basename(path)}`);
  });
  let text = lines.join("\n");
  for (const [from, to] of changes) {
    if (!text.includes(from)) throw new Error(`the glue of this wasm-bindgen has no \`${from}\``);
    text = text.replaceAll(from, () => to);
  }
  return text;
}

/**
 * Returns the hashes of names such as `__wbg_abort_17cafbdd3728580a`, each with the number that
 * replaces it: hashes do not compress, and numbers of the same length do.
 */
export function shortNames(glue) {
  const names = glue.match(/\b__wb\w*_[0-9a-f]{16}\b/g) ?? [];
  const hashes = [...new Set(names.map((name) => name.slice(-16)))].filter((hash) => !hash.startsWith("0000")).sort();
  return hashes.map((hash, number) => [hash, number.toString(16).padStart(hash.length, "0")]);
}

/** Replaces each name in the text or the bytes. */
const shortened = (text, names) => names.reduce((rest, [hash, number]) => rest.replaceAll(hash, number), text);

/** The files of each module beside its glue: the module as text, and whether it is a file too. */
const MODULES = {
  edgelatch: { changes: [...CLIENT_CHANGES, ...CHANGES], inline: "inline.js", isFile: true },
  testing: { changes: CHANGES, inline: "testing-inline.js", isFile: false },
};

function finish(folder, name) {
  const { changes, inline, isFile } = MODULES[name];
  const file = (name) => join(folder, name);
  const adopt = (path) => copyFileSync(file(path), file(basename(path)));
  const glue = finishGlue(readFileSync(file(`${name}.js`), "utf8"), adopt, changes);
  rmSync(file("snippets"), { recursive: true, force: true });
  const names = shortNames(glue);
  writeFileSync(file(`${name}.js`), shortened(glue, names));
  // `latin1` maps each byte to one character and back.
  const module = Buffer.from(shortened(readFileSync(file(`${name}_bg.wasm`), "latin1"), names), "latin1");
  writeFileSync(file(inline), moduleOf(module));
  if (isFile) writeFileSync(file(`${name}_bg.wasm`), module);
  else rmSync(file(`${name}_bg.wasm`));
}

if (import.meta.main) finish(process.argv[2], process.argv[3]);
