import { TABLE } from "./gen/table.ts";
import { OdpError } from "./error.ts";
import type { OperationId } from "./types.ts";

/** Method, path and form of an operation. */
export interface Plan {
  readonly id: string;
  readonly method: string;
  /** With the path parameters as `{name}`. */
  readonly path: string;
  /** True if it certainly changes nothing. */
  readonly isRead: boolean;
  /** True if it runs statements, scripts or jobs, or makes several changes. */
  readonly isAct: boolean;
  readonly isMultipart: boolean;
  /** True if JSON is answered without the envelope; `rawdata`: if the request has this member. */
  readonly isBare: boolean | "rawdata";
  /** Place of the member `stream`, which asks for lines. */
  readonly stream: "query" | "body" | undefined;
  readonly mayRedirect: boolean;
  /** True if some answers are content, for `download`. */
  readonly hasContent: boolean;
  /** The way from one page to the next; `undefined` if there are no pages. */
  readonly paging: Paging | undefined;
}

export interface Paging {
  readonly place: "query" | "body";
  /** Member of the request that names the page. */
  readonly member: string;
  /** Its value for the first page; `undefined`: absent. */
  readonly first: string | undefined;
  /** Member of the answer that names the next page; absent on the last. */
  readonly next: string;
  /** True if this member is in the message; false: in `meta`. */
  readonly isInMessage: boolean;
}

/** Ways by their names in the table. */
const PAGING: Readonly<Record<string, Paging>> = {
  ahead: { place: "query", member: "cursor", first: undefined, next: "cursor", isInMessage: true },
  list: { place: "query", member: "after", first: undefined, next: "next", isInMessage: false },
  mql: { place: "query", member: "cursor", first: "", next: "cursor", isInMessage: false },
  mqlbody: { place: "body", member: "cursor", first: "", next: "cursor", isInMessage: false },
};

/** `OdpError("invalid")` for a name that no operation has, as a program without types may give. */
export function planOf(id: OperationId): Plan {
  if (!Object.hasOwn(TABLE, id)) throw new OdpError("invalid", `There is no operation ${id}.`, { isUndone: true });
  const [method = "", path = "", ...marks] = TABLE[id].split(" ");
  const has = (mark: string): boolean => marks.includes(mark);
  return {
    id,
    method,
    path,
    isRead: has("reads"),
    isAct: has("acts"),
    isMultipart: has("multipart"),
    isBare: has("rawdata") ? "rawdata" : has("bare"),
    stream: has("stream") ? "query" : has("streambody") ? "body" : undefined,
    mayRedirect: has("redirect"),
    hasContent: has("content"),
    paging: PAGING[marks.find((mark) => mark.startsWith("pages="))?.slice("pages=".length) ?? ""],
  };
}
