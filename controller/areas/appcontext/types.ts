import type { Row } from "../../../common/value.ts";

/** An item as clients see it: what was stored, and its id in the collection as the member `id`. */
export type Item = Row & { readonly id: string };

/** Input of `create`, `put` and `replace`. */
export interface ItemText {
  readonly collection: string;
  /** A JSON object. */
  readonly text: string;
  /** 0 or absent: for ever. */
  readonly ttlSeconds?: number;
}

export interface Written {
  readonly id: string;
  /** Input that was accepted but may not do what the caller expects. */
  readonly warnings: readonly string[];
}

/** Items of one collection; all of them when there is no condition. */
export interface ItemQuery {
  readonly collection: string;
  /** In the language of `common/where`. */
  readonly where?: string;
  readonly signal?: AbortSignal;
}
