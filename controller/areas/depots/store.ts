import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { DEPOT_PARALLEL_FILES } from "../../../common/limits.ts";
import type { Stamped } from "../../../common/revisions.ts";
import type { DepotFile } from "../hosts/index.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvEntry } from "../../store/kv.ts";
import { putOnce } from "../../store/once.ts";
import type { TenantRoom } from "../objects/index.ts";
import { keepInRoom } from "../tenants/index.ts";
import { compareVersions } from "./version.ts";

/**
 * A version in the stores. The key `depots/<name>/<version>` in KvStore decides that a version exists; it names the
 * manifest, a blob of JSON. Manifest and files have marks of `owner`, which is new with every upload, so that the loser
 * of a race removes only its own marks.
 */
export interface StoredVersion extends Stamped {
  readonly name: string;
  readonly version: string;
  readonly owner: string;
  readonly manifest: string;
  readonly filecount: number;
  readonly size: number;
  readonly remark: string;
  readonly tags: readonly string[];
  readonly command: string;
  readonly createdMs: number;
  readonly creator: string;
}

export interface VersionEntry {
  readonly revision: number;
  readonly stored: StoredVersion;
}

const PREFIX = "depots/";
const encoder = new TextEncoder();

export class DepotStore {
  readonly #stores: Stores;
  readonly #room: TenantRoom | undefined;

  /** `room` absent: tenants have no quota. */
  constructor(stores: Stores, room?: TenantRoom) {
    this.#stores = stores;
    this.#room = room;
  }

  async get(tenant: string, name: string, version: string): Promise<VersionEntry | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(keyOf(name, version));
    return entry && decoded(entry);
  }

  /** Versions of one depot or of all depots, ascending by version. */
  async list(tenant: string, name?: string): Promise<readonly VersionEntry[]> {
    const { kv } = await this.#stores.tenant(tenant);
    const prefix = name === undefined ? PREFIX : `${PREFIX}${name}/`;
    const entries: VersionEntry[] = [];
    for await (const entry of entriesUnder(kv, prefix)) entries.push(decoded(entry));
    return entries.sort((a, b) => compareVersions(a.stored.version, b.stored.version));
  }

  /**
   * Writes the record. Returns false if another writer was first: the revision is not `ifRevision` any more.
   * `ifRevision` 0: the version must not exist.
   */
  async put(tenant: string, stored: StoredVersion, ifRevision: number): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    const key = keyOf(stored.name, stored.version);
    return (await putOnce(kv, { key, value: encodeJson(stored), ifRevision })).ok;
  }

  async remove(tenant: string, entry: VersionEntry): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    const answer = await kv.delete(keyOf(entry.stored.name, entry.stored.version), { ifRevision: entry.revision });
    return answer.ok;
  }

  async saveContent(
    tenant: string,
    owner: string,
    bytes: AsyncIterable<Uint8Array>,
  ): Promise<{ digest: string; size: number }> {
    const { blobs } = await this.#stores.tenant(tenant);
    return keepInRoom({ room: this.#room, tenant }, bytes, (admitted) => blobs.put(admitted, owner));
  }

  async markContent(tenant: string, owner: string, files: readonly DepotFile[]): Promise<void> {
    const { blobs } = await this.#stores.tenant(tenant);
    await mapLimited(files, DEPOT_PARALLEL_FILES, (file) => blobs.mark(file.digest, owner));
  }

  async saveManifest(tenant: string, owner: string, files: readonly DepotFile[]): Promise<string> {
    const { blobs } = await this.#stores.tenant(tenant);
    return (await blobs.put([encoder.encode(JSON.stringify({ format: 1, files }))], owner)).digest;
  }

  async manifest(tenant: string, stored: StoredVersion): Promise<readonly DepotFile[]> {
    const manifest = JSON.parse((await this.content(tenant, stored.manifest)).toString("utf8")) as Manifest;
    if (manifest.format === 1) return manifest.files;
    throw new AppError("unavailable", "A depot's manifest was written by a newer version.");
  }

  /** Digests of the contents that have marks of the version's owner: its manifest and its files. */
  async digests(tenant: string, stored: StoredVersion): Promise<readonly string[]> {
    const files = await this.manifest(tenant, stored);
    return [stored.manifest, ...files.map((file) => file.digest)];
  }

  async content(tenant: string, digest: string): Promise<Buffer> {
    const { blobs } = await this.#stores.tenant(tenant);
    const pieces: Uint8Array[] = [];
    for await (const piece of blobs.read(digest)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  /** Removes the marks of `owner`, so that a sweep may delete contents without other owners. */
  async release(tenant: string, owner: string, digests: Iterable<string>): Promise<void> {
    const { blobs } = await this.#stores.tenant(tenant);
    await mapLimited([...new Set(digests)], DEPOT_PARALLEL_FILES, (digest) => blobs.unmark(digest, owner));
  }
}

interface Manifest {
  readonly format: number;
  readonly files: readonly DepotFile[];
}

function keyOf(name: string, version: string): string {
  return `${PREFIX}${name}/${version}`;
}

function decoded(entry: KvEntry): VersionEntry {
  return { revision: entry.revision, stored: decodeStored<StoredVersion>(entry.value) };
}
