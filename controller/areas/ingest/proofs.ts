import { timingSafeEqual } from "node:crypto";
import { isAppError } from "../../../common/errors.ts";
import type { PinnedRule, ToldTime } from "../../../proto/gen/agent/v1/agent.ts";
import type { SecretBox } from "../../secrets/index.ts";
import type { EntrySource } from "../hosts/index.ts";

type Host = Pick<EntrySource, "tenant" | "host">;
type Keys = Pick<SecretBox, "keyId" | "derive">;

/**
 * Signs texts for agents with a key that all controllers share, so any controller can verify them without stored state.
 * A proof is valid for one host of one tenant. Its form is `<key id>.<32 bytes, base64url>`.
 */
export class Proofs {
  readonly #keys: Keys;

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  rule(host: Host, rule: Omit<PinnedRule, "proof">): PinnedRule {
    return { ...rule, proof: this.#proof(ruleText(host, rule)) };
  }

  time(host: Host, us: number): ToldTime {
    return { us, proof: this.#proof(timeText(host, us)) };
  }

  holdsForRule(host: Host, rule: PinnedRule): boolean {
    return this.#holds(rule.proof, ruleText(host, rule));
  }

  holdsForTime(host: Host, { us, proof }: ToldTime): boolean {
    return this.#holds(proof, timeText(host, us));
  }

  #proof(text: string, keyId = this.#keys.keyId): string {
    return `${keyId}.${Buffer.from(this.#keys.derive(text, keyId)).toString("base64url")}`;
  }

  #holds(given: string, text: string): boolean {
    const [keyId = ""] = given.split(".", 1);
    try {
      const [a, b] = [Buffer.from(given), Buffer.from(this.#proof(text, keyId))];
      return a.length === b.length && timingSafeEqual(a, b);
    } catch (error) {
      // The key ring has no key with this id.
      if (isAppError(error, "unavailable")) return false;
      throw error;
    }
  }
}

function ruleText({ tenant, host }: Host, { rule, digest, error }: Omit<PinnedRule, "proof">): string {
  return JSON.stringify(["ingest/rule", tenant, host, rule, digest, error]);
}

function timeText({ tenant, host }: Host, us: number): string {
  return JSON.stringify(["ingest/time", tenant, host, us]);
}
