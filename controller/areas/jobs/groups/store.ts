import type { GroupInput } from "../../../../common/api/job-groups.ts";
import type { Stamped } from "../../../../common/revisions.ts";
import type { Runtime } from "../../../runtime.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore, KvTxn } from "../../../store/kv.ts";
import { putOnce, txnOnce } from "../../../store/once.ts";
import { Retry } from "../../../store/calls/retry.ts";

export type GroupName = Pick<GroupInput, "gtype" | "name">;

export interface StoredGroupHost {
  readonly host: string;
  readonly proxy: string;
  readonly port: string;
  readonly username: string;
  /** The password, or a private key in PEM. */
  readonly sealed?: string;
  /** The fingerprint that the host must show; absent: none is stored yet. */
  readonly sshkey?: string;
}

/** A stored group of hosts. Each write has another stamp, so a writer recognises its own write. */
export interface StoredGroup extends GroupName, Stamped {
  readonly hosts: readonly StoredGroupHost[];
}

export const GROUPS = "jobs/group/";

/** Groups of a tenant in its KvStore: `jobs/group/<gtype>/<name>`. */
export class GroupStore {
  readonly #kv: KvStore;
  readonly #retry: Retry;

  constructor(kv: KvStore, { clock, random }: Pick<Runtime, "clock" | "random">) {
    this.#kv = kv;
    this.#retry = new Retry({ clock, random });
  }

  all(): Promise<readonly StoredGroup[]> {
    return this.#retry.run(async () => {
      const groups: StoredGroup[] = [];
      for await (const { value } of entriesUnder(this.#kv, GROUPS)) groups.push(decodeStored<StoredGroup>(value));
      return groups;
    });
  }

  async count(): Promise<number> {
    return (await this.all()).length;
  }

  async read(name: GroupName): Promise<{ readonly revision: number; readonly group: StoredGroup } | undefined> {
    const entry = await this.#retry.run(() => this.#kv.get(keyOf(name)));
    return entry && { revision: entry.revision, group: decodeStored<StoredGroup>(entry.value) };
  }

  /** Stores the group if it is still at `ifRevision`; 0: if it is new. False if another write came first. */
  async put(group: StoredGroup, ifRevision: number): Promise<boolean> {
    const put = { key: keyOf(group), value: encodeJson(group), ifRevision };
    return (await putOnce(this.#kv, put, (write) => this.#retry.run(write))).ok;
  }

  /** Removes the group if it is still at `ifRevision`. False if another write came first. */
  async remove(name: GroupName, ifRevision: number): Promise<boolean> {
    const request: KvTxn = {
      if: [{ key: keyOf(name), revision: ifRevision }],
      then: [{ kind: "delete", key: keyOf(name) }],
    };
    return (await txnOnce(this.#kv, request, (write) => this.#retry.run(write))).ok;
  }
}

function keyOf({ gtype, name }: GroupName): string {
  return `${GROUPS}${gtype}/${name}`;
}
