/**
 * Reads an input as choices: every sequence of bytes is a case, and a changed byte is a changed
 * choice.
 */

export class Choices {
  #bytes;
  #at = 0;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  get left() {
    return this.#bytes.length - this.#at;
  }

  byte() {
    return this.#bytes[this.#at++] ?? 0;
  }

  /** One of several values. */
  one(of) {
    return of[this.byte() % of.length];
  }

  bytes(most) {
    const length = Math.min(this.byte() % (most + 1), Math.max(this.left, 0));
    const taken = this.#bytes.slice(this.#at, this.#at + length);
    this.#at += length;
    return taken;
  }

  /** Any number: one that is at a limit of integers, or eight bytes of one. */
  number() {
    const kind = this.byte();
    if (kind < 160) return NUMBERS[kind % NUMBERS.length];
    if (kind < 220) return this.byte() * this.byte();
    return new Float64Array(Uint8Array.from({ length: 8 }, () => this.byte()).buffer)[0];
  }

  /** Any text, including lone surrogates. */
  text() {
    const kind = this.byte();
    if (kind < 180) return TEXTS[kind % TEXTS.length];
    return String.fromCharCode(...new Uint16Array(Uint8Array.from({ length: 2 * (kind % 13) }, () => this.byte()).buffer));
  }

  /** Any JavaScript value. */
  value() {
    const kind = this.byte() % (ODD.length + 6);
    const all = [
      () => this.number(), () => this.text(), () => this.bytes(40), () => [this.text(), this.text()],
      () => ({ [this.text()]: this.number() }), () => new Proxy({}, { get: thrown }),
    ];
    return kind < ODD.length ? ODD[kind] : all[kind - ODD.length]();
  }
}

const NUMBERS = [
  NaN, 0, -0, 1, 2, 3, 30_000, 100, 99, 86_400_000, 86_400_001, -1, 0.5, 255, 256, 65_535, 65_536, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 32,
  2 ** 53 - 1, 2 ** 53, 2 ** 63, -(2 ** 63), 2 ** 64, 1e300, -1e300, Infinity, -Infinity, Number.MIN_VALUE, 315_360_000_000, 60_000, 1_000,
];
const TEXTS = [
  "job", "", "a", "{a}", "{a}b", "a{b", "x".repeat(512), "x".repeat(513), "é".repeat(256), "\ud800", "\udfffx", "\u0000", "redisson_x", "el:x",
  "https://gateway.example", "http://localhost:1", "token", "return 1", "000102030405060708090a0b0c0d0e0f", "invoice:42", "\u{1f600}", "__proto__",
];
const thrown = () => { throw new RangeError("thrown on purpose"); };
const ODD = [
  undefined, undefined, null, true, false, "", 0n, Symbol("s"), [], {}, thrown, async () => {}, new Date(0), new Map(), Object.create(null),
  { valueOf: thrown, toString: thrown }, { then: thrown }, [null], new Array(3), { length: 2 ** 32 }, new Uint8Array(0), new Float64Array(2),
];
