import { createHash } from "node:crypto";
import { AppError } from "../../../common/errors.ts";
import { OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import type { Page, PageRequest } from "../objects.ts";

const CHECK_BYTES = 8;

/**
 * The request that a cursor belongs to, as text: the same request of the same tenant gives the same text. It is created
 * only when a cursor is read or written, because most requests have one page.
 */
export type RequestText = () => string;

export function requestText(keyspace: string, operation: string, ...parts: readonly unknown[]): RequestText {
  return () => JSON.stringify([keyspace, operation, ...parts]);
}

/** Encodes a position to continue from, bound to its request by a checksum. */
export function writeCursor(request: RequestText, place: string): string {
  return Buffer.concat([check(request, place), Buffer.from(place)]).toString("base64url");
}

/** The position; `undefined` at the beginning. */
export function readCursor(request: RequestText, page: PageRequest): string | undefined {
  if (!Number.isInteger(page.limit) || page.limit < 1 || page.limit > OBJECT_PAGE_MAX) {
    throw new AppError("invalid", `A page holds 1 to ${OBJECT_PAGE_MAX} items.`);
  }
  if (page.cursor === undefined) return undefined;
  const bytes = Buffer.from(page.cursor, "base64url");
  const place = bytes.toString("utf8", CHECK_BYTES);
  if (bytes.length <= CHECK_BYTES || !bytes.subarray(0, CHECK_BYTES).equals(check(request, place))) {
    throw new AppError("invalid", "This cursor does not belong to this request.");
  }
  return place;
}

/** A page that continues at a position. Its cursor is encoded on demand, because many callers use only the page. */
export function pageBefore<T>(items: readonly T[], request: RequestText, place: string): Page<T> {
  return {
    items,
    get cursor() {
      return writeCursor(request, place);
    },
  };
}

function check(request: RequestText, place: string): Buffer {
  return createHash("sha256").update(`${request()}\n${place}`).digest().subarray(0, CHECK_BYTES);
}
