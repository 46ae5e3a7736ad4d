import { AppError } from "../../../common/errors.ts";
import { INGEST_FAULT_MAX_CHARACTERS, PIN_AHEAD_MAX_US } from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import type { Clock } from "../../../common/time.ts";
import type { Batch, PinnedRule, ToldTime } from "../../../proto/gen/agent/v1/agent.ts";
import type { SecretBox } from "../../secrets/index.ts";
import { PIN_REFUSED, type EntrySource } from "../hosts/index.ts";
import type { Rule } from "../rules/index.ts";
import { hasRecords, ruleKeys, spanUs } from "./batches.ts";
import { Proofs } from "./proofs.ts";

interface PinsOptions {
  readonly clock: Clock;
  readonly keys: Pick<SecretBox, "keyId" | "derive">;
}

/** Makes pins for the batches of agents, and checks that a pin came from a controller. */
export class Pins {
  readonly #clock: Clock;
  readonly #proofs: Proofs;

  constructor({ clock, keys }: PinsOptions) {
    this.#clock = clock;
    this.#proofs = new Proofs(keys);
  }

  rule(source: EntrySource, key: string, rule: Pick<Rule, "digest"> | AppError): PinnedRule {
    const told =
      rule instanceof AppError
        ? { digest: "", error: beginningOf(rule.message, INGEST_FAULT_MAX_CHARACTERS) || rule.code }
        : { digest: rule.digest, error: "" };
    return this.#proofs.rule(source, { rule: key, ...told });
  }

  /**
   * Returns the lower bound for the write times of the host's next batches, in microseconds, with its proof. It is
   * later than the controller's own writes in the current millisecond. It is not earlier than `last`, the bound that
   * the host got before, if that has a valid proof. So if the clocks of two controllers differ, the later one decides.
   */
  time(source: EntrySource, last: ToldTime | undefined): ToldTime {
    const nowUs = (Math.floor(this.#clock.nowMs()) + 1) * US_PER_MS;
    const lastUs = last && this.#proofs.holdsForTime(source, last) ? last.us : 0;
    return this.#proofs.time(source, Math.max(nowUs, lastUs));
  }

  /**
   * Throws `AppError("invalid")` with the reason `PIN_REFUSED` unless a controller told this host the time and the
   * rules that the batch is pinned to. Also throws it if the writes of the batch would begin before that time, or end
   * more than `PIN_AHEAD_MAX_US` after it. A batch without records needs no pin.
   */
  check(source: EntrySource, { entries, pin }: Batch): void {
    if (!hasRecords(entries)) return;
    if (!pin) throw pinRefused("Records came without what they are to be parsed by.");
    const { told, writeUs, rules } = pin;
    if (!told || !this.#proofs.holdsForTime(source, told))
      throw pinRefused("No controller told this host the time that its batch is pinned to.");
    if (!(writeUs >= told.us && writeUs + spanUs(entries) <= told.us + PIN_AHEAD_MAX_US))
      throw pinRefused("The time of a batch is too far from the one that its host was told.");
    const proved = new Set(rules.map(({ rule }) => rule));
    if (rules.every((rule) => this.#proofs.holdsForRule(source, rule))) {
      const keys = [...ruleKeys(entries)];
      if (keys.every((key) => proved.has(key))) return;
    }
    throw pinRefused("No controller told this host the rules that its batch is pinned to.");
  }
}

const US_PER_MS = 1_000;

export function pinRefused(message: string): AppError {
  return new AppError("invalid", message, { details: { reason: PIN_REFUSED } });
}
