import type { GroupInput } from "../../../../common/api/jobs.ts";
import type { Runtime } from "../../../runtime.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import { putOnce } from "../../../store/once.ts";
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

/**
 * A stored group of hosts. `write` is a new random text with every write, so that a writer recognises its own write.
 */
export interface StoredGroup extends GroupName {
  readonly write: string;
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

  /** Removes a group. False if there is no such group. */
  async remove(name: GroupName): Promise<boolean> {
    if (!(await this.read(name))) return false;
    await this.#retry.run(() => this.#kv.delete(keyOf(name)));
    return true;
  }
}

function keyOf({ gtype, name }: GroupName): string {
  return `${GROUPS}${gtype}/${name}`;
}
