import { createHmac, hash as digest } from "node:crypto";
import { AUDIT_TEXT_MAX_CHARACTERS } from "../../../common/limits.ts";
import { cutText } from "../../../common/text/cut.ts";
import type { SecretBox } from "../../secrets/index.ts";
import { madeWellFormed } from "../../turns/well-formed.ts";
import type { AuditEntry } from "./types.ts";

/** A stored entry, bound to the previous entry of the same run of the same controller. */
export interface AuditRecord extends Required<AuditEntry> {
  readonly timeMs: number;
  /** One run of one controller for one tenant. A failed write of entries also begins a new run. */
  readonly run: string;
  /** 1 for the first entry of a run. */
  readonly sequence: number;
  /** Hash of the previous entry; 64 zeros in the first entry. */
  readonly previous: string;
  /** `<key id>:<HMAC-SHA256 over all members above>`, hexadecimal. Entries of earlier versions have a plain SHA-256. */
  readonly hash: string;
}

/** Computes hashes that need the key file: access to the store alone does not suffice to forge them. */
export type ChainKeys = Pick<SecretBox, "keyId" | "derive">;

/** `previous` of the first entry of a run. */
export const FIRST = "0".repeat(64);

/** Makes the text storable: a text that no store accepts would fail the other entries of its batch. */
function keptText(text: string): string {
  return madeWellFormed(cutText(text, AUDIT_TEXT_MAX_CHARACTERS));
}

/** The state of one run. It creates the next records, and advances when they are `kept`. */
export class Chain {
  readonly #run: string;
  readonly #hashes: EntryHashes;
  #sequence = 0;
  #hash = FIRST;
  #timeMs = 0;

  constructor(run: string, keys: ChainKeys) {
    this.#run = run;
    this.#hashes = new EntryHashes(keys);
  }

  /** Creates records that follow the kept ones, in the order of `entries`. */
  link(entries: readonly AuditEntry[], nowMs: number): readonly AuditRecord[] {
    let previous = this.#hash;
    // A clock that jumps back must not change the order of a run.
    const timeMs = Math.max(nowMs, this.#timeMs);
    return entries.map((entry, index) => {
      const { tenant, permission, outcome, code, remote, traceparent } = entry;
      const sequence = this.#sequence + index + 1;
      const body = {
        tenant,
        user: keptText(entry.user),
        permission,
        action: keptText(entry.action),
        object: keptText(entry.object ?? ""),
        outcome,
        code,
        remote,
        traceparent,
        timeMs,
        run: this.#run,
        sequence,
        previous,
      };
      previous = this.#hashes.of(body);
      return { hash: previous, ...body };
    });
  }

  /** Call it when the next records may be chained to these. */
  kept(records: readonly AuditRecord[]): void {
    const last = records.at(-1);
    if (last === undefined) return;
    this.#sequence = last.sequence;
    this.#hash = last.hash;
    this.#timeMs = last.timeMs;
  }
}

/** Context for deriving the chain's keys. */
export const KEY_CONTEXT = "audit/chain";
const HASH = /^([0-9a-f]+):[0-9a-f]{64}$/;

/** True for a digest without a key, as earlier versions made it. */
export function isPlain(hash: string): boolean {
  return /^[0-9a-f]{64}$/.test(hash);
}

/** Computes the hashes of one run or one verification. Each key is derived once. */
export class EntryHashes {
  readonly #keys: ChainKeys;
  readonly #derived = new Map<string, Uint8Array>();

  constructor(keys: ChainKeys) {
    this.#keys = keys;
  }

  /** Uses the current key unless `keyId` names another one. */
  of(record: Omit<AuditRecord, "hash">, keyId = this.#keys.keyId): string {
    let key = this.#derived.get(keyId);
    if (key === undefined) this.#derived.set(keyId, (key = this.#keys.derive(KEY_CONTEXT, keyId)));
    return `${keyId}:${createHmac("sha256", key).update(textOf(record)).digest("hex")}`;
  }
}

export function hashOf(record: Omit<AuditRecord, "hash">, keys: ChainKeys): string {
  return new EntryHashes(keys).of(record);
}

/** Id of the key of a hash; `undefined` for a hash without a key. */
export function keyIdOf(hash: string): string | undefined {
  return HASH.exec(hash)?.[1];
}

/**
 * Seals the JSON text of an object with the same key. Entries are hashed as arrays, so an object's seal is never the
 * hash of an entry.
 */
export function sealOf(text: string, keys: ChainKeys, keyId = keys.keyId): string {
  if (!text.startsWith("{")) throw new Error("Only objects are sealed.");
  return `${keyId}:${createHmac("sha256", keys.derive(KEY_CONTEXT, keyId)).update(text).digest("hex")}`;
}

/** The hash without a key, which entries of earlier versions of the program have. */
export function plainHashOf(record: Omit<AuditRecord, "hash">): string {
  return digest("sha256", textOf(record), "hex");
}

function textOf(record: Omit<AuditRecord, "hash">): string {
  const { run, sequence, timeMs, tenant, user, permission, action, outcome, code, remote, traceparent } = record;
  const common = [run, sequence, timeMs, tenant, user, permission, action, outcome, code, remote, traceparent];
  // Entries of earlier versions have no object.
  return JSON.stringify([...common, record.previous, ...(record.object === "" ? [] : [record.object])]);
}
