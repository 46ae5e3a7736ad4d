import { createHash } from "node:crypto";
import { FILE_SNAPSHOTS_MAX, FILE_VERSIONS_MAX } from "../../../../common/limits.ts";
import { AppError } from "../../../../common/errors.ts";
import { isInside } from "../../../../common/paths.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import type { KvEntry, KvOperation } from "../../../store/kv.ts";
import type { Place } from "../names.ts";
import type { ListSize } from "./lists.ts";

/** A tree as it was at one time: a version of a path, or the snapshot that `/local` serves. */
export interface KeptTree extends Place, ListSize {
  /** Name of the version; absent for a snapshot. */
  readonly name?: string;
  /** User who kept it. */
  readonly user: string;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /** Name of the list of its entries. */
  readonly list: string;
  /** True: its files may hide those of the system's space where they are served. */
  readonly mayHide?: true;
}

/** A record as read, with the revision of its last write. */
export interface StoredTree extends KeptTree {
  readonly revision: number;
}

interface Page {
  readonly trees: readonly StoredTree[];
  /** Name of the last version; absent: this is the last page. */
  readonly next?: string;
}

const VERSIONS = "files/versions/";
const SNAPSHOTS = "files/snapshots/";
const COUNTS = "files/version-counts/";

/**
 * Records of kept trees in the KvStore: `files/versions/<hash of the place>/<name>`, `files/snapshots/<hash of the
 * place>`, and the number of versions of a place, `files/version-counts/<hash of the place>`. Only journaled work of the
 * place writes them, so two writers of one record never meet.
 */
export class KeptTrees {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  async get(tenant: string, key: string): Promise<StoredTree | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(key);
    return entry && stored(entry);
  }

  /** Versions of the place by name, behind the name `after`. */
  async versions(tenant: string, place: Place, { after, limit }: { after?: string; limit: number }): Promise<Page> {
    const { kv } = await this.#stores.tenant(tenant);
    const prefix = versionKey(place, "");
    const options = { limit, ...(after !== undefined && { after: prefix + after }) };
    const page = await kv.list(prefix, options);
    return { trees: page.entries.map(stored), ...(page.next && { next: page.next.slice(prefix.length) }) };
  }

  /** The snapshots of a tenant, at most `FILE_SNAPSHOTS_MAX`. */
  async snapshots(tenant: string): Promise<readonly (StoredTree & { readonly key: string })[]> {
    const { kv } = await this.#stores.tenant(tenant);
    const found: (StoredTree & { readonly key: string })[] = [];
    for await (const entry of entriesUnder(kv, SNAPSHOTS)) found.push({ ...stored(entry), key: entry.key });
    return found;
  }

  /** The snapshots of paths inside of the place. */
  async snapshotsBelow(tenant: string, { space, fullname }: Place): Promise<readonly (StoredTree & { key: string })[]> {
    const snapshots = await this.snapshots(tenant);
    return snapshots.filter(
      (one) => one.space === space && one.fullname !== fullname && isInside(fullname, one.fullname),
    );
  }

  /**
   * `AppError("too_large")` if there is no room for one more: the place has `FILE_VERSIONS_MAX` versions, or the tenant
   * has `FILE_SNAPSHOTS_MAX` snapshots. The error is no `limited`, because work would wait for room, and so prevent that
   * a version is deleted.
   */
  async requireRoom(tenant: string, tree: Place & Pick<KeptTree, "name">): Promise<void> {
    if (tree.name === undefined) {
      if ((await this.snapshots(tenant)).length < FILE_SNAPSHOTS_MAX) return;
      throw new AppError("too_large", `There are ${FILE_SNAPSHOTS_MAX} snapshots: remove some.`);
    }
    if ((await this.#count(tenant, tree)) < FILE_VERSIONS_MAX) return;
    throw new AppError("too_large", `${tree.fullname} has ${FILE_VERSIONS_MAX} versions: delete old ones.`);
  }

  /** The writes that put the record. Errors as `requireRoom`, if the record is new. */
  async putting(tenant: string, key: string, tree: KeptTree): Promise<readonly KvOperation[]> {
    const put = { kind: "put", key, value: encodeJson(tree) } as const;
    if ((await this.get(tenant, key)) !== undefined) return [put];
    await this.requireRoom(tenant, tree);
    return tree.name === undefined ? [put] : [put, ...(await this.#counting(tenant, tree, 1))];
  }

  async deleting(tenant: string, key: string, tree: KeptTree): Promise<readonly KvOperation[]> {
    const remove = { kind: "delete", key } as const;
    return tree.name === undefined ? [remove] : [remove, ...(await this.#counting(tenant, tree, -1))];
  }

  async #counting(tenant: string, place: Place, by: 1 | -1): Promise<readonly KvOperation[]> {
    const key = COUNTS + hashOf(place);
    const count = (await this.#count(tenant, place)) + by;
    return [count > 0 ? { kind: "put", key, value: encodeJson(count) } : { kind: "delete", key }];
  }

  async #count(tenant: string, place: Place): Promise<number> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(COUNTS + hashOf(place));
    return entry ? decodeStored<number>(entry.value) : 0;
  }
}

export function versionKey(place: Place, name: string): string {
  return `${VERSIONS}${hashOf(place)}/${name}`;
}

export function snapshotKey(place: Place): string {
  return SNAPSHOTS + hashOf(place);
}

/** Paths are longer than keys may be. */
function hashOf({ space, fullname }: Place): string {
  return createHash("sha256").update(`${space}:${fullname}`).digest("base64url");
}

function stored({ value, revision }: KvEntry): StoredTree {
  return { ...decodeStored<KeptTree>(value), revision };
}
