/**
 * Names of a browser's drawing interface that pdf.js looks for when it is loaded. Reading texts draws nothing, so the
 * classes are empty.
 */
class Undrawn {}

const NAMES = ["DOMMatrix", "ImageData", "Path2D"] as const;

/** Defines the names that this thread lacks. Call it before pdf.js is loaded. */
export function defineDrawing(): void {
  for (const name of NAMES)
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value: Undrawn, configurable: true });
}
