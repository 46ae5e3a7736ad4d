import type { Random } from "../../../common/time.ts";

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);

/**
 * The W3C trace context of one call: the caller's trace if the header is valid, otherwise a new trace; always with a
 * new span.
 */
export function traceparentOf(header: string | string[] | undefined, random: Random): string {
  const match = typeof header === "string" ? TRACEPARENT.exec(header) : null;
  const sound = match !== null && match[1] !== NO_TRACE && match[2] !== NO_SPAN;
  if (sound) return `00-${match[1]}-${hexadecimal(random, 8)}-${match[3]}`;
  const fresh = hexadecimal(random, 24);
  return `00-${fresh.slice(0, 32)}-${fresh.slice(32)}-01`;
}

function hexadecimal(random: Random, bytes: number): string {
  return Buffer.from(random.bytes(bytes)).toString("hex");
}

/** The trace id, which all spans of a trace share. */
export function traceIdOf(traceparent: string): string {
  return traceparent.split("-")[1] ?? traceparent;
}
