/**
 * Encodes the WebAssembly module as text, for entries that cannot rely on a file: each of the
 * commonest bytes is one letter, each other byte two. With gzip this is a fifth smaller than
 * base64, whose letters do not align with bytes. pkg/decode.js decodes it.
 */

/** Printable ASCII that needs no escape in JavaScript, JSON or HTML. */
const LETTERS = Array.from({ length: 0x7f - 0x20 }, (_, index) => String.fromCharCode(0x20 + index)).filter(
  (letter) => !"\"$'<\\`".includes(letter),
);
/** The number of letters that encode a byte alone; each of the others begins a pair. */
const SINGLE = LETTERS.length - 2;

/**
 * Returns the `text` of the bytes, `order` (each byte in hexadecimal digits, the commonest first)
 * and `size`.
 */
export function encode(bytes) {
  const counts = new Array(256).fill(0);
  for (const byte of bytes) counts[byte] += 1;
  // Sorting is stable, so bytes of equal frequency stay in numeric order.
  const order = [...counts.keys()].sort((a, b) => counts[b] - counts[a]);
  const pairs = LETTERS.slice(SINGLE).flatMap((first) => LETTERS.map((second) => first + second));
  const words = [...LETTERS.slice(0, SINGLE), ...pairs];
  const wordOf = [];
  order.forEach((byte, place) => (wordOf[byte] = words[place]));
  const digits = order.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { text: Array.from(bytes, (byte) => wordOf[byte]).join(""), order: digits, size: bytes.length };
}

/** Returns a JavaScript module that exports the encoded bytes. */
export function moduleOf(bytes) {
  const { text, order, size } = encode(bytes);
  return `export const size = ${size};\nexport const order = "${order}";\nexport const text =\n"${text}";\n`;
}
