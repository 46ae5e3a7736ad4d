import { createHmac, hash as digest } from "node:crypto";
import { AUDIT_TEXT_MAX_CHARACTERS } from "../../../common/limits.ts";
import { cutText } from "../../../common/text/cut.ts";
import type { SecretBox } from "../../secrets/index.ts";
import { madeWellFormed } from "../../well-formed.ts";
import type { AuditEntry } from "./types.ts";

/** An entry as it is kept: bound to the one before it in the same run of the same controller. */
export interface AuditRecord extends Required<AuditEntry> {
  readonly timeMs: number;
  /** One run of one controller for one tenant; a new one also after entries could not be written. */
  readonly run: string;
  /** 1 for the first entry of a run. */
  readonly sequence: number;
  /** Hash of the entry before; 64 zeros for the first. */
  readonly previous: string;
  /** `<key id>:<HMAC-SHA256 over everything above>`, hexadecimal. Entries of earlier versions have a plain SHA-256. */
  readonly hash: string;
}

/** Computes hashes that need the key file: access to the store alone is not enough to forge them. */
export type ChainKeys = Pick<SecretBox, "keyId" | "derive">;

/** What the first entry of a run follows on. */
export const FIRST = "0".repeat(64);

type Texts = [user: string, action: string, object: string];

/** A text that no store keeps would take the entries beside it along. */
function keptText(text: string): string {
  return madeWellFormed(cutText(text, AUDIT_TEXT_MAX_CHARACTERS));
}

/** The state of one run: gives the next record, and advances only once that record was kept. */
export class Chain {
  readonly #run: string;
  readonly #keys: ChainKeys;
  #sequence = 0;
  #hash = FIRST;
  #timeMs = 0;

  constructor(run: string, keys: ChainKeys) {
    this.#run = run;
    this.#keys = keys;
  }

  /** Records that follow on what was kept so far, in the order of `entries`. */
  link(entries: readonly AuditEntry[], nowMs: number): readonly AuditRecord[] {
    let previous = this.#hash;
    // A clock that jumps back must not disturb the order of a run.
    const timeMs = Math.max(nowMs, this.#timeMs);
    return entries.map((entry, index) => {
      const { tenant, permission, outcome, code, remote, traceparent } = entry;
      const [user, action, object] = [entry.user, entry.action, entry.object ?? ""].map(keptText) as Texts;
      const sequence = this.#sequence + index + 1;
      const body = {
        tenant,
        user,
        permission,
        action,
        object,
        outcome,
        code,
        remote,
        traceparent,
        timeMs,
        run: this.#run,
        sequence,
        previous,
      };
      previous = hashOf(body, this.#keys);
      return { hash: previous, ...body };
    });
  }

  kept(records: readonly AuditRecord[]): void {
    const last = records.at(-1);
    if (last === undefined) return;
    this.#sequence = last.sequence;
    this.#hash = last.hash;
    this.#timeMs = last.timeMs;
  }
}

/** What is derived of keys for the chain. */
export const KEY_CONTEXT = "audit/chain";
const HASH = /^([0-9a-f]+):[0-9a-f]{64}$/;

/** True of a digest that needed no key, as earlier versions made it. */
export function isPlain(hash: string): boolean {
  return /^[0-9a-f]{64}$/.test(hash);
}

/** By the present key when `keyId` names no other. */
export function hashOf(record: Omit<AuditRecord, "hash">, keys: ChainKeys, keyId = keys.keyId): string {
  return `${keyId}:${createHmac("sha256", keys.derive(KEY_CONTEXT, keyId)).update(textOf(record)).digest("hex")}`;
}

/** The key a hash was made with; undefined of a hash that needed none. */
export function keyIdOf(hash: string): string | undefined {
  return HASH.exec(hash)?.[1];
}

/** Seals an object as JSON under the same key. Entries are hashed as arrays, so neither passes for the other. */
export function sealOf(text: string, keys: ChainKeys, keyId = keys.keyId): string {
  if (!text.startsWith("{")) throw new Error("Only objects are sealed.");
  return `${keyId}:${createHmac("sha256", keys.derive(KEY_CONTEXT, keyId)).update(text).digest("hex")}`;
}

/** As earlier versions made it. */
export function plainHashOf(record: Omit<AuditRecord, "hash">): string {
  return digest("sha256", textOf(record), "hex");
}

function textOf(record: Omit<AuditRecord, "hash">): string {
  const { run, sequence, timeMs, tenant, user, permission, action, outcome, code, remote, traceparent } = record;
  const common = [run, sequence, timeMs, tenant, user, permission, action, outcome, code, remote, traceparent];
  // Entries of earlier versions name no object.
  return JSON.stringify([...common, record.previous, ...(record.object === "" ? [] : [record.object])]);
}
