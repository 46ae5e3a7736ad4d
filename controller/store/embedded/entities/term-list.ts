import type { Page, PageRequest, TermsRequest } from "../../objects.ts";
import { Cursors } from "../cursor.ts";
import type { Environment } from "../environment/environment.ts";
import { bytesText, concat, prefixEnd, textBytes, u32 } from "../bytes/keys.ts";
import { recordTermPrefix, recordTermText } from "../bytes/object-keys.ts";

/** Sorts after every continuation of a text. */
const LAST = "\u{10ffff}";

export interface TermPage extends PageRequest {
  /** Identifies the store in cursors. */
  readonly place: string;
}

/** The indexes are sorted by term, so they serve as the list of terms. */
export function readTerms(env: Environment, request: TermsRequest, page: TermPage): Page<string> {
  const { beginning, cid } = request;
  const cursors = new Cursors([page.place, "terms", beginning, cid ?? null]);
  const after = cursors.read(page);
  const found = cid === undefined ? ofEntities(env, beginning, after) : ofRecords(env, { beginning, cid }, after);
  const items: string[] = [];
  for (const term of found) {
    if (items.length >= page.limit) return { items, cursor: cursors.write(textBytes(items.at(-1)!)) };
    items.push(term);
  }
  return { items };
}

function* ofEntities(env: Environment, beginning: string, after: Uint8Array | undefined): Generator<string> {
  const { terms } = env.read();
  const last = after && bytesText(after);
  for (const term of terms.getKeys({ start: last ?? beginning, end: `${beginning}${LAST}` })) {
    if (term !== last) yield term;
  }
}

/**
 * Keys begin with the length of their term, so each length is walked separately, from the first key of one term to that
 * of the next.
 */
function* ofRecords(
  env: Environment,
  { beginning, cid }: { readonly beginning: string; readonly cid: number },
  after: Uint8Array | undefined,
): Generator<string> {
  const { recordTerms } = env.read();
  const wanted = textBytes(beginning);
  const end = prefixEnd(u32(cid))!;
  let start = after === undefined ? firstOfLength(cid, wanted.length, wanted) : behind(cid, bytesText(after));
  for (;;) {
    const [key] = recordTerms.getKeys({ start, end, limit: 1 });
    if (key === undefined) return;
    const { length, term } = recordTermText(key);
    const order = Buffer.compare(term.subarray(0, wanted.length), wanted);
    if (order === 0 && length >= wanted.length) {
      const text = bytesText(term);
      yield text;
      start = behind(cid, text);
    } else start = firstOfLength(cid, order < 0 ? length : length + 1, wanted);
  }
}

function firstOfLength(cid: number, length: number, beginning: Uint8Array): Uint8Array {
  return concat(u32(cid), Uint8Array.of(length >> 8, length & 0xff), beginning);
}

function behind(cid: number, term: string): Uint8Array {
  return prefixEnd(recordTermPrefix(cid, term))!;
}
