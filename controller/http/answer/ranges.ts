import { AppError } from "../../../common/errors.ts";

/** Bytes from `start` (inclusive) to `end` (exclusive). */
export interface BytePart {
  readonly start: number;
  readonly end: number;
}

const ONE_RANGE = /^\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i;

/**
 * The part that a `Range` header asks for (RFC 9110, 14.2). `undefined` for the whole: without the header, for another
 * unit, for a header that cannot be read, and for several ranges. `AppError("range")` if no byte is in the range.
 */
export function partOf(range: string | undefined, size: number): BytePart | undefined {
  const [found, first = "", last = ""] = ONE_RANGE.exec(range ?? "") ?? [];
  if (found === undefined || (first === "" && last === "")) return undefined;
  const [start, end] = first === "" ? [Math.max(0, size - Number(last)), size] : [Number(first), endOf(last, size)];
  if (first !== "" && last !== "" && Number(last) < start) return undefined;
  if (start < Math.min(end, size)) return { start, end: Math.min(end, size) };
  throw new AppError("range", `The content has ${String(size)} bytes, and none of them is in the range.`, {
    details: { size },
  });
}

function endOf(last: string, size: number): number {
  return last === "" ? size : Number(last) + 1;
}

/** Value of `Content-Range`. */
export function contentRange({ start, end }: BytePart, size: number): string {
  return `bytes ${String(start)}-${String(end - 1)}/${String(size)}`;
}
