// Alone in this file, so that entries without the rest of the package can use it.

/** Returns a random text of 32 hexadecimal digits. */
export const randomValue = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
