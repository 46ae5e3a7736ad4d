import { CHANGE_INTENT_KEEP_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import type { Retry } from "../../../store/calls/retry.ts";
import type { TriggerDefinition, TriggerVersion } from "../types.ts";
import type { Definitions } from "./definition.ts";
import { triggerName } from "./naming.ts";

const PREFIX = "objecttriggerversions/";

interface Dependencies {
  readonly kv: Pick<KvStore, "get" | "put">;
  readonly clock: Pick<Clock, "nowMs">;
  readonly retry: Retry;
}

/** Replaced versions of triggers. They are kept as long as changes that need them may wait. */
export class TriggerVersions {
  readonly #of: Dependencies;

  constructor(of: Dependencies) {
    this.#of = of;
  }

  /** Call before the version is replaced. Idempotent. */
  async keep(trigger: TriggerDefinition | undefined): Promise<void> {
    if (trigger === undefined) return;
    const { kv, clock, retry } = this.#of;
    const key = keyOf({ ...trigger, atMs: trigger.modifiedAtMs });
    const expiresAtMs = Math.floor(clock.nowMs()) + CHANGE_INTENT_KEEP_MS;
    await retry.run(() => kv.put(key, encodeJson(trigger), { expiresAtMs }));
  }

  /**
   * Absent when the trigger was removed since, even if another trigger has its name now. Also absent when the version
   * was replaced more than `CHANGE_INTENT_KEEP_MS` ago.
   */
  async find(
    version: TriggerVersion,
    { triggers }: Pick<Definitions, "triggers">,
  ): Promise<TriggerDefinition | undefined> {
    const present = triggers.get(triggerName(version));
    if (present === undefined || version.atMs < (present.sinceMs ?? present.modifiedAtMs)) return undefined;
    if (present.modifiedAtMs === version.atMs) return present;
    const { kv, retry } = this.#of;
    const kept = await retry.run(() => kv.get(keyOf(version)));
    return kept && decodeStored<TriggerDefinition>(kept.value);
  }
}

function keyOf(version: TriggerVersion): string {
  return `${PREFIX}${triggerName(version)}/${version.atMs}`;
}
