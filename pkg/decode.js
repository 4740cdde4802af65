// Decodes the module from the text that `cargo xtask build` writes (xtask/scripts/encode.mjs): each
// of the commonest bytes is one letter, each other byte two. Compressed, the text is a fifth
// smaller than base64.

/** The letters: printable ASCII that needs no escape in JavaScript, JSON or HTML. */
const LETTERS = letters();
/** The number of bytes with a letter of their own; each later letter begins a pair. */
const SINGLE = LETTERS.length - 2;

function letters() {
  const all = [];
  for (let code = 0x20; code < 0x7f; code++) if (!"\"$'<\\`".includes(String.fromCharCode(code))) all.push(code);
  return all;
}

/**
 * Returns the `size` bytes that `text` encodes. `order` lists every byte in two hexadecimal digits,
 * the commonest first.
 */
export function decode(text, order, size) {
  const digit = new Uint8Array(128);
  LETTERS.forEach((code, place) => (digit[code] = place));
  const byte = Uint8Array.from({ length: 256 }, (_, place) => Number.parseInt(order.slice(2 * place, 2 * place + 2), 16));
  const bytes = new Uint8Array(size);
  for (let from = 0, to = 0; to < size; to++) {
    let place = digit[text.charCodeAt(from++)];
    if (place >= SINGLE) place += (place - SINGLE) * (LETTERS.length - 1) + digit[text.charCodeAt(from++)];
    bytes[to] = byte[place];
  }
  return bytes;
}
