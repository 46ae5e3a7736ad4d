import { AppError } from "../../../../common/errors.ts";
import { FILE_LIST_READ_ATTEMPTS } from "../../../../common/limits.ts";
import type { Stores } from "../../../store/engine.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import type { OpenedFile } from "../contents.ts";
import type { FileEntry } from "../entries.ts";
import { foldersAbove, placeBelowRoot, type Place } from "../names.ts";
import { openPlace } from "../open-places.ts";
import type { KeptEntries } from "../versions/kept-entries.ts";
import { ListRemoved } from "../versions/lists.ts";
import { snapshotKey, type KeptTrees, type StoredTree } from "../versions/records.ts";
import type { FileVisibility } from "../visible.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly trees: KeptTrees;
  readonly entries: KeptEntries;
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
}

interface Found {
  readonly entry: FileEntry;
  readonly tree: StoredTree;
}

/** Files of the snapshots that `tolocal` keeps. Of several snapshots that contain a path, the newest one decides. */
export class LocalFiles {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /**
   * Opens a file of a snapshot of the users' space or else of the system's space. The principal's open paths apply to
   * both. `AppError("not_found")` also for the keyspace of another tenant, and if the principal may not see the file.
   */
  async open(principal: Principal, keyspace: string, path: string): Promise<OpenedFile> {
    requirePermission(principal, "files:read");
    requireKeyspace(principal, keyspace);
    const { fullname } = openPlace(principal, placeBelowRoot({ path, space: "user" }));
    const found = await this.#served(principal, fullname);
    const entry = found?.entry;
    const visibility = await this.#with.visibilityOf(principal);
    if (!found || !entry || !visibility.shown(entry))
      throw new AppError("not_found", `No snapshot has a file ${fullname}.`);
    if (!entry.content) throw new AppError("invalid", `${fullname} is a folder, not a file.`);
    visibility.requireContent(entry);
    const { blobs } = await this.#with.stores.tenant(principal.tenant);
    const { digest } = entry.content;
    const { size, modifiedMs } = entry;
    // Clients that compare times must see each newer snapshot as newer, even if its file is older.
    const versionMs = found.tree.timeMs;
    const read: OpenedFile["read"] = (part) => blobs.read(digest, part);
    return { digest, size, modifiedMs, versionMs, fullname, revision: digest, bytes: blobs.read(digest), read };
  }

  /** The first file, of the users' space or the system's; a folder only if neither has a file. */
  async #served(principal: Principal, fullname: string): Promise<Found | undefined> {
    const users = await this.#newest(principal, { space: "user", fullname });
    if (users?.entry.content && users.tree.mayHide) return users;
    const system = await this.#newest(principal, { space: "system", fullname });
    const file = [system, users].find((found) => found?.entry.content);
    return file ?? users ?? system;
  }

  async #newest(principal: Principal, place: Place): Promise<Found | undefined> {
    for (let attempt = 0; attempt < FILE_LIST_READ_ATTEMPTS; attempt++) {
      try {
        return await this.#find(principal, place);
      } catch (error) {
        // The snapshot was replaced after its record was read.
        if (!(error instanceof ListRemoved)) throw error;
      }
    }
    throw new AppError("conflict", `The snapshot of ${place.fullname} is replaced all the time: try again.`);
  }

  async #find(principal: Principal, place: Place): Promise<Found | undefined> {
    const keys = [place, ...foldersAbove(place)].map(snapshotKey);
    const trees = await Promise.all(keys.map((key) => this.#with.trees.get(principal.tenant, key)));
    const there = trees.filter((tree) => tree !== undefined);
    const [tree] = there.sort((one, other) => other.revision - one.revision);
    const entry = tree && (await this.#with.entries.find(principal, tree, place.fullname));
    return tree && entry && { entry, tree };
  }
}

/** `AppError("not_found")` for any keyspace but the principal's own: its name space without the slash in front. */
export function requireKeyspace({ ospace }: Principal, keyspace: string): void {
  if (`/${keyspace}` !== ospace) throw new AppError("not_found", `There is no keyspace ${keyspace}.`);
}
