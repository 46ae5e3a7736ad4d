import { hash } from "node:crypto";
import { AppError } from "../../../common/errors.ts";
import { OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import type { PageRequest } from "../objects.ts";
import { concat, textBytes } from "./bytes/keys.ts";

const CHECK_BYTES = 8;

/** Cursors of pages, bound to their request by a checksum: a cursor of another request, tenant or store is refused. */
export class Cursors {
  readonly #request: string;

  constructor(request: readonly unknown[]) {
    this.#request = JSON.stringify(request);
  }

  write(place: Uint8Array): string {
    return Buffer.from(concat(this.#check(place), place)).toString("base64url");
  }

  /** The position to continue from; `undefined` at the beginning. Also checks the page's limit. */
  read(page: PageRequest): Uint8Array | undefined {
    if (!(Number.isInteger(page.limit) && page.limit >= 1 && page.limit <= OBJECT_PAGE_MAX)) {
      throw new AppError("invalid", `A page has 1 to ${OBJECT_PAGE_MAX} items, not ${page.limit}.`);
    }
    if (page.cursor === undefined) return undefined;
    const bytes = new Uint8Array(Buffer.from(page.cursor, "base64url"));
    const place = bytes.subarray(CHECK_BYTES);
    const genuine =
      bytes.length > CHECK_BYTES && Buffer.compare(bytes.subarray(0, CHECK_BYTES), this.#check(place)) === 0;
    if (!genuine) throw new AppError("invalid", "This cursor does not belong to this request.");
    return place;
  }

  #check(place: Uint8Array): Uint8Array {
    return hash("sha256", concat(textBytes(`${this.#request}\n`), place), "buffer").subarray(0, CHECK_BYTES);
  }
}
