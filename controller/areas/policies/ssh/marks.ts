import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { putOnce } from "../../../store/once.ts";
import type { Versioned } from "../store.ts";

/** Due times of a policy that were not run. */
export interface MissedRuns {
  readonly reason: string;
  readonly count: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** A run that has begun and whose end is not stored. */
export interface OpenRun {
  readonly revision: number;
  readonly scheduledMs: number;
  readonly startedMs: number;
  /** Due times before it that were not run. */
  readonly missed?: MissedRuns;
}

/** The account of the due times of one policy on one host. */
export interface SshMark {
  /** Each due time up to this one is the scheduled time of a run, or is counted in a gap. */
  readonly throughMs: number;
  readonly run?: OpenRun;
}

export interface PolicyOnHost {
  readonly tenant: string;
  readonly host: string;
  readonly policy: string;
}

const MARKS = "policies/sshrun/";

/** Marks of runs over SSH, in KvStore under `policies/sshrun/<host>/<policy>`. */
export class SshMarks {
  readonly #stores: Stores;
  readonly #controller: string;

  /** `controller`: id of this controller. It is in every mark, so that each writer can tell its own. */
  constructor(stores: Stores, controller: string) {
    this.#stores = stores;
    this.#controller = controller;
  }

  async get(of: PolicyOnHost): Promise<Versioned<SshMark>> {
    const entry = await (await this.#stores.tenant(of.tenant)).kv.get(keyOf(of));
    return { revision: entry?.revision ?? 0, value: entry && decodeStored<SshMark>(entry.value) };
  }

  /** Writes over the mark of that revision. Returns the new revision; `undefined`: another controller wrote first. */
  async put(of: PolicyOnHost, mark: SshMark, revision: number): Promise<number | undefined> {
    const { kv } = await this.#stores.tenant(of.tenant);
    const value = encodeJson({ ...mark, controller: this.#controller });
    const written = await putOnce(kv, { key: keyOf(of), value, ifRevision: revision });
    return written.ok ? written.revision : undefined;
  }

  async remove(of: PolicyOnHost): Promise<void> {
    await (await this.#stores.tenant(of.tenant)).kv.delete(keyOf(of));
  }

  /** All policies on hosts that have a mark. */
  async all(tenant: string): Promise<readonly PolicyOnHost[]> {
    const { kv } = await this.#stores.tenant(tenant);
    const found: PolicyOnHost[] = [];
    for await (const { key } of entriesUnder(kv, MARKS)) {
      const [host = "", policy = ""] = key.slice(MARKS.length).split("/");
      found.push({ tenant, host, policy });
    }
    return found;
  }
}

function keyOf({ host, policy }: PolicyOnHost): string {
  return `${MARKS}${host}/${policy}`;
}
