import type { Random } from "../../../common/time.ts";

/** A disk writes a whole sector or nothing. */
const SECTOR_BYTES = 512;

export type Node = Folder | Content;

/** A folder: its names now, and those that survive a loss of power. */
export class Folder {
  now = new Map<string, Node>();
  kept = new Map<string, Node>();
}

export function* walk(folder: Folder, path: string): Iterable<[path: string, content: Content]> {
  for (const [name, node] of folder.now) {
    if (node instanceof Folder) yield* walk(node, `${path}/${name}`);
    else yield [`${path}/${name}`, node];
  }
}

/** A name that was added (to `node`) or removed. */
export interface Naming {
  readonly folder: Folder;
  readonly name: string;
  readonly node: Node | undefined;
  /** The name that a rename adds when it removes this one. */
  readonly goesWith?: Naming;
}

export function settle({ folder, name, node }: Naming): void {
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
export class Content {
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
