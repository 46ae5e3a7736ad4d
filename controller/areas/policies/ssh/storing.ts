import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { POLICY_SSH_AGAIN_MS, POLICY_SSH_STORE_MS } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Ask, Batch, Entry, Told } from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import { PIN_REFUSED, type EntrySource } from "../../hosts/index.ts";

/** Stores entries as those of agents. */
export interface EntryStore {
  told(source: EntrySource, ask: Ask): Promise<Told>;
  store(source: EntrySource, batches: readonly Batch[]): Promise<void>;
}

export interface StoringParts {
  readonly runtime: Pick<Runtime, "clock" | "log">;
  readonly entries: EntryStore;
  /** Throws when this controller is not the one that runs policies over SSH any more. */
  readonly requireLead: () => void;
}

export interface Stream {
  readonly source: EntrySource;
  readonly entries: Entry[];
  /** Absent if none of the entries is records. */
  readonly rule?: string | undefined;
  /** Once it fires, nothing is tried again. */
  readonly signal: AbortSignal;
}

/**
 * Stores the entries of a stream, with the rule and the time that apply now. Tries again for `POLICY_SSH_STORE_MS` if the
 * store fails, always with the same rows, and then throws the error.
 */
export async function storeEntries(parts: StoringParts, stream: Stream): Promise<void> {
  const { clock, log } = parts.runtime;
  const { tenant, host } = stream.source;
  const untilMs = clock.monotonicMs() + POLICY_SSH_STORE_MS;
  let batch: Batch | undefined;
  for (;;) {
    parts.requireLead();
    try {
      batch ??= await pinned(parts, stream);
      return await parts.entries.store(stream.source, [batch]);
    } catch (error) {
      if (stream.signal.aborted || clock.monotonicMs() >= untilMs) throw error;
      // Nothing of a batch is stored whose pin is refused.
      if (isAppError(error) && error.details?.["reason"] === PIN_REFUSED) batch = undefined;
      log.warn({ tenant, host, reason: errorText(error) }, "records of a run over SSH are stored again");
      await wait(clock, POLICY_SSH_AGAIN_MS, stream.signal);
    }
  }
}

async function pinned({ entries: store }: StoringParts, { source, entries, rule }: Stream): Promise<Batch> {
  const unpinned = { streamId: source.streamId, entries, missing: 0, pin: undefined };
  if (rule === undefined) return unpinned;
  const told = await store.told(source, { rules: [rule], last: undefined });
  if (!told.time) throw new AppError("unavailable", "No time was told for the records.");
  return { ...unpinned, pin: { writeUs: told.time.us, told: told.time, rules: told.rules } };
}
