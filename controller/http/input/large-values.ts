import type { TSchema } from "typebox";
import type { Shape } from "./shape.ts";

/** Values of an input that are too large for one turn. */
export interface LargeValues {
  readonly decoded: Map<string, unknown>;
  readonly missing: Set<string>;
  /** Texts of large values that are where a text is wanted, and the values whose texts are not written yet. */
  readonly written: Map<object, string>;
  readonly unwritten: Set<object>;
  readonly lists: { readonly member: string; readonly list: unknown[]; readonly items: TSchema }[];
  readonly objects: {
    readonly member: string;
    readonly shape: Shape;
    readonly given: Readonly<Record<string, unknown>>;
    readonly result: Record<string, unknown>;
  }[];
}

export function noLargeValues(): LargeValues {
  return {
    decoded: new Map(),
    missing: new Set(),
    written: new Map(),
    unwritten: new Set(),
    lists: [],
    objects: [],
  };
}

export const NO_LARGE_VALUES = noLargeValues();
