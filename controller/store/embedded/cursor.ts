import { hash } from "node:crypto";
import { AppError } from "../../../common/errors.ts";
import { OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import type { Page, PageRequest } from "../objects.ts";
import { concat, textBytes } from "./bytes/keys.ts";

const CHECK_BYTES = 8;

/** Cursors of pages, bound to their request by a checksum: a cursor of another request, tenant or store is refused. */
export class Cursors {
  readonly #request: readonly unknown[];

  constructor(request: readonly unknown[]) {
    this.#request = request;
  }

  /** The page with a cursor at `place`. The cursor is made when it is read, because most pages have enough. */
  page<T>(items: readonly T[], place: Uint8Array): Page<T> {
    return new CutPage(items, () => this.write(place));
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
    return hash("sha256", concat(textBytes(`${JSON.stringify(this.#request)}\n`), place), "buffer").subarray(
      0,
      CHECK_BYTES,
    );
  }
}

class CutPage<T> implements Page<T> {
  readonly items: readonly T[];
  readonly #cursorOf: () => string;
  #cursor: string | undefined;

  constructor(items: readonly T[], cursorOf: () => string) {
    this.items = items;
    this.#cursorOf = cursorOf;
  }

  get cursor(): string {
    return (this.#cursor ??= this.#cursorOf());
  }
}
