import type { Search, Segment } from "../../../../common/search/index.ts";

type Kinds = { readonly [K in Segment["kind"]]: Extract<Segment, { kind: K }> };

/** The one segment of that kind. */
export function segmentOf<K extends Segment["kind"]>(search: Search, kind: K): Kinds[K] | undefined {
  return search.segments.find((segment): segment is Kinds[K] => segment.kind === kind);
}
