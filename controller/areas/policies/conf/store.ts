import { KV_TXN_MAX_OPERATIONS } from "../../../../common/limits.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvCondition, KvOperation, KvStore } from "../../../store/kv.ts";
import { txnOnce } from "../../../store/once.ts";
import type { Stores } from "../../../store/engine.ts";
import {
  assignmentKey,
  definitionKey,
  type ConfReference,
  type StoredAssignment,
  type StoredDefinition,
  type Versioned,
} from "../store.ts";

/**
 * Confs in KvStore: `policies/conf/<policy>/<host>` is the reference of each host, which is also in the host's list.
 * `policies/confbytes/<policy>/<digest>` are the bytes, once for all hosts, and `policies/confdigest/<policy>/<digest>`
 * lists them without their bytes. Each change of references also writes `policies/confchange/<policy>`, so that unused
 * bytes are removed only if no reference was made meanwhile.
 */
const REFERENCES = "policies/conf/";
const BYTES = "policies/confbytes/";
const DIGESTS = "policies/confdigest/";
const CHANGES = "policies/confchange/";

/** Digests whose two keys are deleted in one transaction, under one condition. */
const SWEPT_AT_ONCE = Math.floor((KV_TXN_MAX_OPERATIONS - 1) / 2);

interface StoredBytes {
  readonly base64: string;
}

/** A change of the conf of one policy on one host. */
export interface ConfChange {
  readonly name: string;
  readonly host: string;
  readonly seen: Versioned<StoredAssignment>;
  /** Absent: the host has no conf of this policy any more. */
  readonly conf?: {
    readonly reference: ConfReference;
    readonly definition: Versioned<StoredDefinition>;
    /** Revision of the bytes, as `putBytes` returned it. */
    readonly bytesRevision: number;
  };
}

export class ConfStore {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /**
   * Stores the bytes of a conf, unless they are stored. Returns their revision; undefined if they were removed at the
   * same time.
   */
  async putBytes(
    tenant: string,
    name: string,
    { digest, bytes }: { digest: string; bytes: Uint8Array },
  ): Promise<number | undefined> {
    const kv = await this.#kv(tenant);
    const key = bytesKey(name, digest);
    const stored: StoredBytes = { base64: Buffer.from(bytes).toString("base64") };
    const { ok, revision } = await kv.txn({
      if: [{ key, revision: 0 }],
      then: [
        { kind: "put", key, value: encodeJson(stored) },
        { kind: "put", key: digestKey(name, digest), value: encodeJson({}) },
        { kind: "put", key: CHANGES + name, value: encodeJson({}) },
      ],
    });
    return ok ? revision : (await kv.get(key))?.revision;
  }

  /** Undefined if the bytes were removed, because no host has this conf any more. */
  async bytes(tenant: string, name: string, digest: string): Promise<Uint8Array | undefined> {
    const entry = await (await this.#kv(tenant)).get(bytesKey(name, digest));
    return entry && Buffer.from(decodeStored<StoredBytes>(entry.value).base64, "base64");
  }

  /** The references of a policy by host, also those that were made for an earlier policy of that name. */
  async references(tenant: string, name: string): Promise<ReadonlyMap<string, ConfReference>> {
    const prefix = `${REFERENCES}${name}/`;
    const found = new Map<string, ConfReference>();
    for await (const { key, value } of entriesUnder(await this.#kv(tenant), prefix))
      found.set(key.slice(prefix.length), decodeStored<ConfReference>(value));
    return found;
  }

  /** Names of all policies for which confs are stored. */
  async policies(tenant: string): Promise<ReadonlySet<string>> {
    const names = new Set<string>();
    for await (const { key } of entriesUnder(await this.#kv(tenant), CHANGES)) names.add(key.slice(CHANGES.length));
    return names;
  }

  /**
   * Makes one change. The revision of the host's list rises. Returns false if the list, the policy or the bytes changed
   * after they were seen.
   */
  async change(tenant: string, { name, host, seen, conf }: ConfChange): Promise<boolean> {
    const others = Object.entries(seen.value?.confs ?? {}).filter(([policy]) => policy !== name);
    const confs = Object.fromEntries(conf ? [...others, [name, conf.reference]] : others);
    const list: StoredAssignment = { policies: seen.value?.policies ?? [], confs };
    const conditions: KvCondition[] = [{ key: assignmentKey(host), revision: seen.revision }];
    if (conf) {
      conditions.push({ key: definitionKey(name), revision: conf.definition.revision });
      conditions.push({ key: bytesKey(name, conf.reference.digest), revision: conf.bytesRevision });
    }
    const key = `${REFERENCES}${name}/${host}`;
    const then: KvOperation[] = [
      { kind: "put", key: assignmentKey(host), value: encodeJson(list) },
      { kind: "put", key: CHANGES + name, value: encodeJson({}) },
      conf ? { kind: "put", key, value: encodeJson(conf.reference) } : { kind: "delete", key },
    ];
    return (await txnOnce(await this.#kv(tenant), { if: conditions, then })).ok;
  }

  /** Removes bytes that no host of the policy refers to. Does nothing if a reference is made at the same time. */
  async sweep(tenant: string, name: string): Promise<void> {
    const kv = await this.#kv(tenant);
    const change = await kv.get(CHANGES + name);
    if (change === undefined) return;
    const condition: KvCondition = { key: CHANGES + name, revision: change.revision };
    const prefix = `${DIGESTS}${name}/`;
    const stored: string[] = [];
    for await (const { key } of entriesUnder(kv, prefix)) stored.push(key.slice(prefix.length));
    const references = await this.references(tenant, name);
    const used = new Set([...references.values()].map(({ digest }) => digest));
    const unused = stored.filter((digest) => !used.has(digest));
    for (let at = 0; at < unused.length; at += SWEPT_AT_ONCE) {
      const some = unused.slice(at, at + SWEPT_AT_ONCE);
      const keys = some.flatMap((digest) => [bytesKey(name, digest), digestKey(name, digest)]);
      if (!(await this.#delete(kv, condition, keys))) return;
    }
    // This key comes last: by it, `policies` finds bytes that are left by an interrupted sweep.
    if (references.size === 0) await this.#delete(kv, condition, [CHANGES + name]);
  }

  /** Returns false if the condition does not hold. A repetition is safe, because no other writer makes these keys while it holds. */
  async #delete(kv: KvStore, condition: KvCondition, keys: readonly string[]): Promise<boolean> {
    return (await txnOnce(kv, { if: [condition], then: keys.map((key) => ({ kind: "delete", key })) })).ok;
  }

  async #kv(tenant: string): Promise<KvStore> {
    return (await this.#stores.tenant(tenant)).kv;
  }
}

function digestKey(name: string, digest: string): string {
  return `${DIGESTS}${name}/${digest}`;
}

function bytesKey(name: string, digest: string): string {
  return `${BYTES}${name}/${digest}`;
}
