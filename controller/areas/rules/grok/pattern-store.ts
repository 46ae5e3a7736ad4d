import { AppError } from "../../../../common/errors.ts";
import { GROK_OWN_PATTERNS_MAX_BYTES } from "../../../../common/limits.ts";
import { unstamped, type Stamped } from "../../../../common/revisions.ts";
import type { Random } from "../../../../common/time.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import { putOnce } from "../../../store/once.ts";
import type { Retry } from "../../../store/calls/retry.ts";

const PATTERNS = "rules/patterns";
const WRITE_BYTES = 12;

/** A user's grok pattern. */
export interface StoredPattern extends Stamped {
  readonly pattern: string;
  /** A sample text that the pattern should match; empty: none. */
  readonly eg: string;
}

/** `write` is a new random text for every write, so that a writer recognizes its own value. */
interface Stored {
  readonly write: string;
  readonly patterns: readonly (readonly [name: string, pattern: StoredPattern])[];
}

/**
 * All patterns of a tenant, in the order of their names, with the revision that was read. Revision 0: none was stored
 * yet.
 */
export interface PatternsState {
  readonly revision: number;
  readonly patterns: ReadonlyMap<string, StoredPattern>;
}

/** Reads the patterns of a tenant. They are one value, because patterns refer to each other. */
export async function readPatterns(kv: Pick<KvStore, "get">): Promise<PatternsState> {
  const entry = await kv.get(PATTERNS);
  return { revision: entry?.revision ?? 0, patterns: new Map(entry && decodeStored<Stored>(entry.value).patterns) };
}

/**
 * Writes the patterns. Returns false if they changed since they were read at `revision`. `AppError("too_large")` beyond
 * `GROK_OWN_PATTERNS_MAX_BYTES`.
 */
export async function writePatterns(
  kv: Pick<KvStore, "put">,
  { revision, patterns }: PatternsState,
  { retry, random }: { readonly retry: Retry; readonly random: Random },
): Promise<boolean> {
  const write = Buffer.from(random.bytes(WRITE_BYTES)).toString("base64url");
  const sorted = [...patterns].sort(([one], [other]) => (one < other ? -1 : 1));
  const value = encodeJson({ write, patterns: sorted } satisfies Stored);
  // The texts count, as users write them.
  const texts = sorted.map(([name, pattern]) => [name, unstamped(pattern)]);
  if (encodeJson(texts).length > GROK_OWN_PATTERNS_MAX_BYTES)
    throw new AppError(
      "too_large",
      `All patterns of a tenant have at most ${GROK_OWN_PATTERNS_MAX_BYTES} bytes as JSON.`,
      {
        details: { limit: "GROK_OWN_PATTERNS_MAX_BYTES" },
      },
    );
  const { ok } = await putOnce(kv, { key: PATTERNS, value, ifRevision: revision }, (put) => retry.run(put));
  return ok;
}
