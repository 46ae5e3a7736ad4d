import { HEADER_BYTES, isTreePage, PAGE_FLAGS, readTree, TREE_BYTES, type PageFile, type Tree } from "./page-file.ts";

/** LMDB itself refuses deeper trees. */
const DEPTH_MAX = 32;
const NODE_HEADER_BYTES = 8;
const NODE_FLAGS = { big: 0x01, tree: 0x02, many: 0x04 } as const;
/** Reference to a long value: its first page, a transaction, the number of pages. */
const LONG_VALUE_BYTES = 24;

export interface WalkListener {
  /**
   * Called for each value of each reachable key; a key with many values is reported several times. `isTree`: the value
   * is the record of a tree.
   */
  readonly entry: (key: Buffer, value: Buffer, isTree: boolean) => void;
  /** Called for each fault with its page; everything below that page is left out. */
  readonly fault: (page: number, what: string) => void;
}

interface Node {
  readonly flags: number;
  /** In a leaf: length of the value. In a branch: lower part of a page number. */
  readonly low: number;
  readonly key: Buffer;
  /** Start of the value in a leaf; end of the node in a branch. */
  readonly at: number;
}

/**
 * Walks trees page by page like LMDB, but verifies everything: page numbers, bounds, the order of keys, the sizes of
 * values. A page may be used in one place only.
 */
export class TreeWalk {
  readonly #file: PageFile;
  readonly #seen = new Set<number>();

  constructor(file: PageFile) {
    this.#file = file;
  }

  /** Keys that are numbers have their own order, which is not checked. */
  walk(tree: Tree, { entry, fault }: WalkListener, keys: "bytes" | "numbers" = "bytes"): void {
    if (tree.root === undefined) return;
    if (tree.depth < 1 || tree.depth > DEPTH_MAX) return fault(tree.root, `a tree of depth ${tree.depth}`);
    this.#page(tree.root, tree.depth, { entry, fault, order: keys === "bytes" ? inOrder() : () => true });
  }

  #page(page: number, height: number, visit: Visit): void {
    const bytes = this.#claim(page, visit);
    if (bytes === undefined) return;
    const wanted = height > 1 ? PAGE_FLAGS.branch : PAGE_FLAGS.leaf;
    if ((bytes.readUInt16LE(18) & 0xff) !== wanted) return visit.fault(page, "not a page of this tree");
    const nodes = nodesOf(bytes, height > 1);
    if (nodes === undefined) return visit.fault(page, "its bounds contradict each other");
    for (const [index, node] of nodes.entries()) {
      if (height > 1) this.#page(childOf(node), height - 1, visit);
      else if (visit.order(node.key)) this.#leaf(page, { bytes, node }, visit);
      else visit.fault(page, `key ${index} is out of order`);
    }
  }

  #leaf(page: number, { bytes, node }: { readonly bytes: Buffer; readonly node: Node }, visit: Visit): void {
    const value =
      (node.flags & NODE_FLAGS.big) === 0
        ? bytes.subarray(node.at, node.at + node.low)
        : this.#longValue(page, { bytes, node }, visit);
    if (value === undefined) return;
    if ((node.flags & NODE_FLAGS.many) === 0) visit.entry(node.key, value, (node.flags & NODE_FLAGS.tree) !== 0);
    else this.#manyValues(page, { key: node.key, value, isTree: (node.flags & NODE_FLAGS.tree) !== 0 }, visit);
  }

  /**
   * Walks the values of a key that has many. LMDB stores them as the keys of a tree of their own. A small tree is one
   * page inside the value. A large tree has pages elsewhere, and the value is its header (`isTree`).
   */
  #manyValues(
    page: number,
    { key, value, isTree }: { readonly key: Buffer; readonly value: Buffer; readonly isTree: boolean },
    visit: Visit,
  ): void {
    const { fault } = visit;
    const entry = (one: Buffer): void => visit.entry(key, one, false);
    if (isTree) {
      if (value.length < TREE_BYTES) return fault(page, "the record of a tree is too short");
      return this.walk(readTree(value, 0), { entry, fault });
    }
    const nodes = value.length < HEADER_BYTES ? undefined : nodesOf(value, false);
    if (nodes === undefined) return fault(page, "the values of a key contradict each other");
    const order = inOrder();
    for (const node of nodes) {
      if (order(node.key)) entry(node.key);
      else fault(page, "the values of a key are out of order");
    }
  }

  #longValue(
    page: number,
    { bytes, node }: { readonly bytes: Buffer; readonly node: Node },
    visit: Visit,
  ): Buffer | undefined {
    if (node.at + LONG_VALUE_BYTES > bytes.length) return void visit.fault(page, "a long value has no place");
    const first = Number(bytes.readBigUInt64LE(node.at));
    const head = this.#claim(first, visit);
    if (head === undefined) return undefined;
    const needed = Math.ceil((HEADER_BYTES + node.low) / this.#file.meta.pageBytes);
    if ((head.readUInt16LE(18) & 0xff) !== PAGE_FLAGS.overflow || head.readUInt32LE(20) < needed)
      return void visit.fault(first, "not the page of a long value");
    const whole = this.#file.read(first, HEADER_BYTES + node.low);
    if (whole.length < HEADER_BYTES + node.low) return void visit.fault(first, "the file ends in a long value");
    for (let behind = 1; behind < needed; behind += 1) this.#seen.add(first + behind);
    return whole.subarray(HEADER_BYTES);
  }

  #claim(page: number, visit: Visit): Buffer | undefined {
    if (!isTreePage(page) || page > this.#file.meta.lastPage) return void visit.fault(page, "no page has this number");
    if (this.#seen.has(page)) return void visit.fault(page, "it belongs to two places");
    this.#seen.add(page);
    const bytes = this.#file.read(page, this.#file.meta.pageBytes);
    if (bytes.length < this.#file.meta.pageBytes) return void visit.fault(page, "the file ends before it");
    if (bytes.readBigUInt64LE(0) !== BigInt(page)) return void visit.fault(page, "it bears another number");
    return bytes;
  }
}

interface Visit extends WalkListener {
  /** Returns false for a key that does not come after the previous one. */
  readonly order: (key: Buffer) => boolean;
}

/** `undefined` if the page's header is impossible. */
function nodesOf(page: Buffer, isBranch: boolean): readonly Node[] | undefined {
  const [lower, upper] = [page.readUInt16LE(20), page.readUInt16LE(22)];
  if (lower > upper || lower % 2 !== 0 || HEADER_BYTES + upper > page.length || HEADER_BYTES + lower > page.length)
    return undefined;
  const nodes: Node[] = [];
  for (let at = HEADER_BYTES; at < HEADER_BYTES + lower; at += 2) {
    const start = page.readUInt16LE(at) + HEADER_BYTES;
    const node =
      start < HEADER_BYTES + upper || start + NODE_HEADER_BYTES > page.length
        ? undefined
        : nodeAt(page, start, isBranch);
    if (node === undefined) return undefined;
    nodes.push(node);
  }
  return nodes;
}

function nodeAt(page: Buffer, start: number, isBranch: boolean): Node | undefined {
  const [flags, keyLength] = [page.readUInt16LE(start + 4), page.readUInt16LE(start + 6)];
  const low = page.readUInt32LE(start);
  const at = start + NODE_HEADER_BYTES + keyLength;
  const inline = isBranch || (flags & NODE_FLAGS.big) !== 0 ? 0 : low;
  if (at + inline > page.length) return undefined;
  return { flags, low, key: page.subarray(start + NODE_HEADER_BYTES, at), at };
}

/** In a branch the flags are the upper part of the page number. */
function childOf({ flags, low }: Node): number {
  return flags * 2 ** 32 + low;
}

function inOrder(): (key: Buffer) => boolean {
  let last: Buffer | undefined;
  return (key) => {
    const isAfter = last === undefined || Buffer.compare(last, key) < 0;
    if (isAfter) last = key;
    return isAfter;
  };
}
