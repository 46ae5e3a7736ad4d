import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { OdpClient, type Fetch } from "../../../common/client/index.ts";
import { fileRoutes } from "../../../controller/areas/files/routes.ts";
import type { SyncResult } from "../../../controller/cli/fs/execution.ts";
import { syncOnce, type SyncEnvironment, type SyncRequest } from "../../../controller/cli/fs/run.ts";
import { fileController, type FileController } from "../areas/files.ts";
import { openTestEngine } from "../engines/engine.ts";
import { openTestHttp, PASSWORD } from "../http/http-app.ts";
import { realClock } from "../time/clock.ts";
import { testPrincipal } from "../time/runtime.ts";

export const ADMIN = testPrincipal();

/** A controller with a file space and an HTTP port, and folders to synchronise with it. */
export interface FileSyncWorld extends AsyncDisposable {
  readonly url: string;
  readonly files: FileController["files"];
  /** `fetch` replaces that of the platform; then no call is repeated. */
  readonly client: (fetch?: Fetch) => OdpClient;
  /** A new local folder, and the path of a new folder of the controller that does not exist yet. */
  readonly folders: () => Promise<Folders>;
}

export class Folders {
  readonly local: string;
  /** With `odp:`. */
  readonly remote: string;
  readonly #world: FileSyncWorld;

  constructor(world: FileSyncWorld, local: string, remote: string) {
    this.#world = world;
    this.local = local;
    this.remote = `odp:${remote}`;
  }

  path(name = ""): string {
    return join(this.local, name);
  }

  /** A file or folder of the controller. */
  place(name = ""): { readonly path: string; readonly space: "user" } {
    return { path: `${this.remote.slice("odp:".length)}${name === "" ? "" : `/${name}`}`, space: "user" };
  }

  async write(name: string, text: string): Promise<void> {
    await mkdir(dirname(this.path(name)), { recursive: true });
    await writeFile(this.path(name), text);
  }

  async writeThere(name: string, text: string): Promise<void> {
    await this.#world.files.write(ADMIN, this.place(name), { text });
  }

  async removeThere(name: string): Promise<void> {
    await this.#world.files.remove(ADMIN, this.place(name));
  }

  /** Contents by path; folders end with a slash. Files of the sync itself are left out. */
  async here(): Promise<Readonly<Record<string, string>>> {
    const found: Record<string, string> = {};
    for (const entry of await readdir(this.local, { recursive: true, withFileTypes: true })) {
      const name = join(entry.parentPath, entry.name).slice(this.local.length + 1);
      if (entry.name.startsWith(".odp-sync-")) continue;
      if (entry.isDirectory()) found[`${name}/`] = "";
      else if (entry.isFile()) found[name] = await readFile(this.path(name), "utf8");
    }
    return sorted(found);
  }

  async there(): Promise<Readonly<Record<string, string>>> {
    const found: Record<string, string> = {};
    const root = this.place().path;
    for (const path of await treeOf(this.#world, root)) {
      const name = path.slice(root.length + 1);
      found[name] = path.endsWith("/") ? "" : (await this.#world.files.read(ADMIN, path)).text;
    }
    return sorted(found);
  }

  /** Names of the files that syncs have left in the local folder. */
  async own(): Promise<readonly string[]> {
    return (await readdir(this.local, { recursive: true })).filter((name) => name.includes(".odp-sync-")).sort();
  }

  up(options: Partial<SyncCall> = {}): Promise<Synced> {
    return synced(this.#world, { from: this.local, to: this.remote, ...options });
  }

  down(options: Partial<SyncCall> = {}): Promise<Synced> {
    return synced(this.#world, { from: this.remote, to: this.local, ...options });
  }
}

export interface SyncCall extends SyncRequest, Partial<SyncEnvironment> {}

export interface Synced {
  readonly code: number;
  readonly result: SyncResult;
}

export function requestOf({ from = "", to = "", ...more }: Partial<SyncRequest>): SyncRequest {
  const exclusion = { patterns: [], byDefault: true };
  return { isForced: false, isDeleting: false, isDry: false, isSystem: false, exclusion, ...more, from, to };
}

export function environmentOf(world: FileSyncWorld, more: Partial<SyncEnvironment> = {}): SyncEnvironment {
  return {
    client: world.client(),
    controller: `${world.url} matrix`,
    clock: realClock,
    random: { next: () => 0.5 },
    platform: process.platform,
    signal: new AbortController().signal,
    progress: () => undefined,
    told: () => undefined,
    note: () => undefined,
    ...more,
  };
}

async function synced(world: FileSyncWorld, call: Partial<SyncCall>): Promise<Synced> {
  let result: SyncResult | undefined;
  const told = (one: SyncResult): void => void (result = one);
  const code = await syncOnce(requestOf(call), environmentOf(world, { ...call, told }));
  if (result === undefined) throw new Error("The sync told no result.");
  return { code, result };
}

export async function openFileSync(): Promise<FileSyncWorld> {
  const engine = await openTestEngine({ clock: realClock });
  const controller = fileController(engine);
  const http = await openTestHttp({ engine, endpoints: fileRoutes(controller.files, controller.search) });
  const { app } = http;
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const base = await mkdtemp(join(tmpdir(), "odp-file-sync-"));
  let count = 0;
  const world: FileSyncWorld = {
    url,
    files: controller.files,
    client: (fetch) =>
      new OdpClient({ url, user: "matrix.admin", password: PASSWORD, ...(fetch && { fetch, attempts: 1 }) }),
    async folders() {
      const name = `synced${count++}`;
      await mkdir(join(base, name));
      return new Folders(world, join(base, name), `/${name}`);
    },
    async [Symbol.asyncDispose]() {
      app.server.closeAllConnections();
      await controller[Symbol.asyncDispose]();
      await http[Symbol.asyncDispose]();
      await rm(base, { recursive: true, force: true });
    },
  };
  return world;
}

async function treeOf({ files }: FileSyncWorld, path: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const page of files.list(ADMIN, { path, space: "user" }))
    for (const { fullname, content } of page) {
      found.push(content ? fullname : `${fullname}/`);
      if (!content) found.push(...(await treeOf({ files } as FileSyncWorld, fullname)));
    }
  return found;
}

function sorted(found: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
}
