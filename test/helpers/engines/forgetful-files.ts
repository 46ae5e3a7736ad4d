import { basename, dirname, resolve } from "node:path";
import type { Files, OpenFile } from "../../../common/files.ts";
import type { Random } from "../../../common/time.ts";
import { seededRandom } from "../time/clock.ts";

/** A disk writes a whole sector or nothing. */
const SECTOR_BYTES = 512;
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

type Node = Folder | Content;

class Folder {
  now = new Map<string, Node>();
  kept = new Map<string, Node>();
}

function* walk(folder: Folder, path: string): Iterable<[path: string, content: Content]> {
  for (const [name, node] of folder.now) {
    if (node instanceof Folder) yield* walk(node, `${path}/${name}`);
    else yield [`${path}/${name}`, node];
  }
}

/** A name that was added (to `node`) or removed. */
interface Naming {
  readonly folder: Folder;
  readonly name: string;
  readonly node: Node | undefined;
  /** The name that a rename adds when it removes this one. */
  readonly goesWith?: Naming;
}

function settle({ folder, name, node }: Naming): void {
  if (node) folder.kept.set(name, node);
  else folder.kept.delete(name);
}

/** Bytes that grow in place; bytes beyond a former size are zero. */
class Bytes {
  #bytes = Buffer.alloc(0);
  size = 0;

  all(): Buffer {
    return this.#bytes.subarray(0, this.size);
  }

  write(bytes: Uint8Array, at: number): void {
    this.resize(Math.max(this.size, at + bytes.length));
    this.#bytes.set(bytes, at);
  }

  resize(size: number): void {
    if (size < this.size) this.#bytes.fill(0, size, this.size);
    if (size > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(size, 2 * this.#bytes.length));
      larger.set(this.all());
      this.#bytes = larger;
    }
    this.size = size;
  }

  set(other: Bytes): void {
    this.resize(0);
    this.write(other.all(), 0);
  }
}

type Change =
  | { readonly at: number; readonly bytes: Uint8Array }
  | { readonly size: number }
  | { readonly reaches: number };

/** A file without its name. */
class Content {
  readonly now = new Bytes();
  readonly #kept = new Bytes();
  #unsynced: Change[] = [];

  write(bytes: Uint8Array, at: number, through: boolean): void {
    this.now.write(bytes, at);
    if (through) this.#kept.write(bytes, at);
    else this.#unsynced.push({ at, bytes: Uint8Array.from(bytes) });
  }

  truncate(size: number): void {
    this.now.resize(size);
    this.#unsynced.push({ size });
  }

  sync(): void {
    for (const change of this.#unsynced) apply(this.#kept, change);
    this.#unsynced = [];
  }

  /** Drops the data in memory; the file then counts as written. */
  lose(): void {
    this.#unsynced = [];
  }

  forget(random: Random): void {
    for (const change of survivors(this.#unsynced, random)) apply(this.#kept, change);
    this.#unsynced = [];
    this.now.set(this.#kept);
  }
}

function apply(bytes: Bytes, change: Change): void {
  if ("size" in change) bytes.resize(change.size);
  else if ("reaches" in change) bytes.resize(Math.max(bytes.size, change.reaches));
  else bytes.write(change.bytes, change.at);
}

function survivors(changes: readonly Change[], random: Random): readonly Change[] {
  const luck = random.next();
  if (luck < 0.25) return [];
  if (luck < 0.4) return changes;
  const first = luck < 0.7 ? changes.slice(0, Math.ceil(random.next() * changes.length)) : changes;
  return first.flatMap((change, index) => {
    const torn = luck >= 0.7 || index === first.length - 1;
    return torn ? tear(change, random) : [change];
  });
}

/** Keeps random sectors of a write. A file may have its new size without the bytes. */
function tear(change: Change, random: Random): Change[] {
  if (!("bytes" in change)) return random.next() < 0.5 ? [change] : [];
  const { at, bytes } = change;
  const parts: Change[] = [];
  if (random.next() < 0.3) parts.push({ reaches: at + bytes.length });
  for (let from = 0; from < bytes.length; ) {
    const to = Math.min(bytes.length, from + SECTOR_BYTES - ((at + from) % SECTOR_BYTES));
    if (random.next() < 0.5) parts.push({ at: at + from, bytes: bytes.subarray(from, to) });
    from = to;
  }
  return parts;
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
