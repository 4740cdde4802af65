/** Measures of a page's picture. */

/**
 * Returns the mean brightness of what the page shows, from 0 (black) to 1 (white), and the part of
 * it that differs much from that. The browser that took the picture also decodes it.
 */
export async function measure(page) {
  const image = await page.screenshot({ encoding: "base64" });
  return page.evaluate(async (data) => {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    const context = canvas.getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const { data: pixels } = context.getImageData(0, 0, bitmap.width, bitmap.height);
    const lights = [];
    for (let at = 0; at < pixels.length; at += 4) lights.push((pixels[at] + pixels[at + 1] + pixels[at + 2]) / (3 * 255));
    const light = lights.reduce((sum, one) => sum + one, 0) / lights.length;
    return { light, ink: lights.filter((one) => Math.abs(one - light) > 0.3).length / lights.length };
  }, image);
}

/**
 * Returns the number of texts in the page's drawings, and those that cover another one or a bar, or
 * are cut off. It runs in the browser.
 */
export function findOverlaps() {
  const faults = [];
  let count = 0;
  for (const drawing of document.querySelectorAll(".picture svg, .chart svg")) {
    const frame = drawing.getBoundingClientRect();
    const bars = [...drawing.querySelectorAll(".bar")].map((bar) => bar.getBoundingClientRect());
    const texts = [...drawing.querySelectorAll("text")].map((text) => ({ name: text.textContent, box: text.getBoundingClientRect() }));
    count += texts.length;
    for (const [index, { name, box }] of texts.entries()) {
      if (box.left < frame.left - 1 || box.right > frame.right + 1) faults.push(`${name} is cut off`);
      // A box is higher than its letters: lines whose boxes touch do not cover each other.
      const covers = (other) =>
        Math.min(box.right, other.right) - Math.max(box.left, other.left) > 1 &&
        Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 0.3 * box.height;
      if (bars.some(covers)) faults.push(`${name} is on a bar`);
      for (const other of texts.slice(index + 1)) if (covers(other.box)) faults.push(`${name} and ${other.name}`);
    }
  }
  return { count, faults };
}
