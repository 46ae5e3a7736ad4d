import { basename, dirname, resolve } from "node:path";
import type { Files, OpenFile } from "../../../common/files.ts";
import type { Random } from "../../../common/time.ts";
import { seededRandom } from "../time/clock.ts";
import { Folder, type Naming, Content, settle, walk, type Node } from "./forgetful-nodes.ts";

const TURNS_MAX = 3;

export type DiskOperation =
  | "open"
  | "read"
  | "write"
  | "truncate"
  | "sync"
  | "names"
  | "rename"
  | "link"
  | "rm"
  | "mkdir";

export interface Faults {
  /** Capacity of the disk in bytes. A write beyond it is cut; the next one fails with ENOSPC. */
  capacityBytes?: number;
  /** Returns true if this operation fails with EIO. As in kernels, a failed sync loses the data of that sync. */
  fails?: (operation: DiskOperation, path: string) => boolean;
  /** Called after an operation took effect and before it is answered: the moment to cut the power. */
  happened?: (operation: DiskOperation, path: string) => void;
}

/**
 * A disk in memory that can lose data. Contents are safe after a sync of their file, names after a sync of their
 * folder. `powerCut` loses a part of the rest that the seed selects: all, none, the later part, or any sectors; names
 * in order or not. It uses no real time and no real input or output: the same seed and calls give the same disk.
 */
export class ForgetfulFiles {
  readonly faults: Faults = {};
  readonly #random: Random;
  readonly #root = new Folder();
  /** Changes of names that are not synced yet, in order. */
  #unsynced: Naming[] = [];
  /** Number of open handles of each file. A file without a name takes space until the last one is closed. */
  readonly #open = new Map<Content, number>();
  #boots = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** Returns the disk for a program that starts now. Earlier programs are dead: their calls are never answered. */
  boot(): Files {
    const boot = ++this.#boots;
    const alive = (): boolean => boot === this.#boots;
    return mount({
      perform: (operation, path, action) => this.#perform({ operation, path, alive }, action),
      find: (path) => this.#find(path),
      root: this.#root,
      named: (naming) => void this.#unsynced.push(naming),
      sync: (node) => this.#sync(node),
      opened: (content, by) => void this.#open.set(content, (this.#open.get(content) ?? 0) + by),
      room: () => (this.faults.capacityBytes === undefined ? Infinity : this.faults.capacityBytes - this.#used()),
    });
  }

  /** Ends the running program. Its writes are not lost while the machine runs. */
  kill(): void {
    this.#boots++;
    this.#open.clear();
  }

  powerCut(): void {
    this.kill();
    for (const naming of this.#surviving()) settle(naming);
    this.#unsynced = [];
    this.#forget(this.#root, new Set());
  }

  /** All contents by path, for tests that inspect them. */
  contents(): ReadonlyMap<string, Buffer> {
    return new Map([...walk(this.#root, "")].map(([path, content]) => [path, Buffer.from(content.now.all())]));
  }

  async #perform<T>(
    call: { operation: DiskOperation; path: string; alive: () => boolean },
    action: () => T,
  ): Promise<T> {
    for (let turns = Math.ceil(this.#random.next() * TURNS_MAX); turns > 0; turns--) await Promise.resolve();
    if (!call.alive()) return never();
    let answer: () => T;
    try {
      if (this.faults.fails?.(call.operation, call.path)) {
        if (call.operation === "sync") this.#lose(call.path);
        throw failure("EIO", call.operation);
      }
      const result = action();
      answer = () => result;
    } catch (error) {
      answer = () => {
        throw error;
      };
    }
    this.faults.happened?.(call.operation, call.path);
    return call.alive() ? answer() : never();
  }

  #find(path: string): Node | undefined {
    let at: Node | undefined = this.#root;
    for (const name of resolve(path).split("/").slice(1)) {
      if (name === "") continue;
      at = at instanceof Folder ? at.now.get(name) : undefined;
    }
    return at;
  }

  #sync(node: Node): void {
    if (node instanceof Content) return node.sync();
    for (const naming of this.#unsynced.filter(({ folder }) => folder === node)) this.#settleNow(naming);
  }

  /** A rename never loses the name: when the old folder has lost it durably, it is durable in the new one. */
  #settleNow(naming: Naming): void {
    if (naming.goesWith) this.#settleNow(naming.goesWith);
    const older = this.#unsynced.filter(({ folder, name }) => folder === naming.folder && name === naming.name);
    const through = older.slice(0, older.indexOf(naming) + 1);
    for (const one of through) settle(one);
    this.#unsynced = this.#unsynced.filter((one) => !through.includes(one));
  }

  #lose(path: string): void {
    const node = this.#find(path);
    if (node instanceof Content) node.lose();
  }

  #surviving(): Naming[] {
    const all = this.#unsynced;
    if (this.#random.next() < 0.5) return all.slice(0, Math.floor(this.#random.next() * (all.length + 1)));
    const chosen = new Set(all.filter(() => this.#random.next() < 0.5));
    for (const { goesWith } of [...chosen]) if (goesWith) chosen.add(goesWith);
    return all.filter((naming) => chosen.has(naming));
  }

  #forget(node: Node, seen: Set<Node>): void {
    if (seen.has(node)) return;
    seen.add(node);
    if (node instanceof Content) return node.forget(this.#random);
    node.now = new Map(node.kept);
    for (const child of node.now.values()) this.#forget(child, seen);
  }

  #used(): number {
    const taking = new Set([...walk(this.#root, "")].map(([, content]) => content));
    for (const [content, times] of this.#open) if (times > 0) taking.add(content);
    return [...taking].reduce((sum, { now }) => sum + now.size, 0);
  }
}

interface Disk {
  readonly root: Folder;
  perform<T>(operation: DiskOperation, path: string, action: () => T): Promise<T>;
  find(path: string): Node | undefined;
  named(naming: Naming): void;
  sync(node: Node): void;
  opened(content: Content, by: 1 | -1): void;
  room(): number;
}

function mount(disk: Disk): Files {
  return {
    open: (path, flags) => disk.perform("open", path, () => openFile(disk, path, flags)),
    readFile: (path) => disk.perform("read", path, () => Buffer.from(contentAt(disk, path, "open").now.all())),
    readdir: (path) => disk.perform("names", path, () => [...folderAt(disk, path, "scandir").now.keys()]),
    mkdir: (path) => disk.perform("mkdir", path, () => makeFolders(disk, resolve(path))),
    rename: (from, to) =>
      disk.perform("rename", from, () => {
        const node = nodeAt(disk, from, "rename");
        const given = name(disk, to, node);
        take(disk, from, given);
      }),
    link: (existing, path) =>
      disk.perform("link", existing, () => {
        const node = nodeAt(disk, existing, "link");
        if (disk.find(path)) throw failure("EEXIST", "link");
        name(disk, path, node);
      }),
    rm: (path, options) => disk.perform("rm", path, () => remove(disk, path, options ?? {})),
    stat: (path) => disk.perform("read", path, () => ({ size: sizeOf(nodeAt(disk, path, "stat")) })),
  };
}

function openFile(disk: Disk, path: string, flags: string): OpenFile {
  const known = disk.find(path);
  if (known && flags.includes("x")) throw failure("EEXIST", "open");
  if (known instanceof Folder) {
    if (flags !== "r") throw failure("EISDIR", "open");
    return handle(disk, { path, node: known, through: false });
  }
  if (!known && flags.startsWith("r")) throw failure("ENOENT", "open");
  const content = known ?? new Content();
  if (!known) name(disk, path, content);
  if (flags.startsWith("w")) content.truncate(0);
  return handle(disk, { path, node: content, through: flags.includes("s") });
}

interface Opened {
  readonly path: string;
  readonly node: Node;
  /** True if opened with O_DSYNC (`s` in its flags): its writes, and only these, are durable at once. */
  readonly through: boolean;
}

function handle(disk: Disk, { path, node, through }: Opened): OpenFile {
  const content = (): Content => {
    if (node instanceof Folder) throw failure("EISDIR", "read");
    return node;
  };
  const sync = (): Promise<void> => disk.perform("sync", path, () => disk.sync(node));
  let open = node instanceof Content;
  if (node instanceof Content) disk.opened(node, 1);
  return {
    read: (into, offset, length, position) =>
      disk.perform("read", path, () => {
        const bytes = content()
          .now.all()
          .subarray(position, position + length);
        into.set(bytes, offset);
        return { bytesRead: bytes.length };
      }),
    write: (bytes, offset, length, position) =>
      disk.perform("write", path, () => {
        const grows = Math.max(0, position + length - content().now.size);
        const fits = grows === 0 ? length : Math.min(length, length - grows + Math.max(0, disk.room()));
        if (fits <= 0 && length > 0) throw failure("ENOSPC", "write");
        content().write(bytes.subarray(offset, offset + fits), position, through);
        return { bytesWritten: fits };
      }),
    truncate: (bytes) => disk.perform("truncate", path, () => content().truncate(bytes)),
    datasync: sync,
    sync,
    stat: () => disk.perform("read", path, () => ({ size: sizeOf(node) })),
    close: async () => {
      if (open && node instanceof Content) disk.opened(node, -1);
      open = false;
    },
  };
}

function makeFolders(disk: Disk, path: string): string | undefined {
  const known = disk.find(path);
  if (known instanceof Folder) return undefined;
  if (known) throw failure("EEXIST", "mkdir");
  const above = makeFolders(disk, dirname(path));
  name(disk, path, new Folder());
  return above ?? path;
}

function remove(
  disk: Disk,
  path: string,
  { force, recursive }: { readonly force?: boolean; readonly recursive?: boolean },
): void {
  const known = disk.find(path);
  if (!known && force) return;
  if (!known) throw failure("ENOENT", "rm");
  if (known instanceof Folder && !recursive) throw failure("EISDIR", "rm");
  take(disk, path);
}

function name(disk: Disk, path: string, node: Node): Naming {
  const naming = { folder: folderAt(disk, dirname(resolve(path)), "open"), name: basename(path), node };
  naming.folder.now.set(naming.name, node);
  disk.named(naming);
  return naming;
}

function take(disk: Disk, path: string, goesWith?: Naming): void {
  const naming = {
    folder: folderAt(disk, dirname(resolve(path)), "unlink"),
    name: basename(path),
    node: undefined,
    ...(goesWith && { goesWith }),
  };
  naming.folder.now.delete(naming.name);
  disk.named(naming);
}

function nodeAt(disk: Disk, path: string, syscall: string): Node {
  const node = disk.find(path);
  if (!node) throw failure("ENOENT", syscall);
  return node;
}

function folderAt(disk: Disk, path: string, syscall: string): Folder {
  const node = nodeAt(disk, path, syscall);
  if (node instanceof Folder) return node;
  throw failure("ENOTDIR", syscall);
}

function contentAt(disk: Disk, path: string, syscall: string): Content {
  const node = nodeAt(disk, path, syscall);
  if (node instanceof Content) return node;
  throw failure("EISDIR", syscall);
}

function sizeOf(node: Node): number {
  return node instanceof Folder ? 0 : node.now.size;
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

function failure(code: string, syscall: string): Error {
  return Object.assign(new Error(`${code}: ${syscall}`), { code, syscall });
}
