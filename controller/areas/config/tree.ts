import { AppError } from "../../../common/errors.ts";
import { CONFIG_TREE_MAX_BYTES, CONFIG_TREE_MAX_ENTRIES } from "../../../common/limits.ts";
import type { ConfigNode } from "../../../common/api/config.ts";
import { parentOf, ROOT } from "./keys.ts";
import type { ShownRecord } from "./rights.ts";

/**
 * Builds the tree at and below `key` from entries in any order. A key can be an entry and a directory at the same time.
 * `undefined` if there are no entries. `AppError("too_large")` beyond `CONFIG_TREE_MAX_ENTRIES` or
 * `CONFIG_TREE_MAX_BYTES`.
 */
export async function treeOf(
  key: string,
  entries: AsyncIterable<ShownRecord> | Iterable<ShownRecord>,
  nowMs: number,
): Promise<ConfigNode | undefined> {
  const tree = new Tree(key);
  for await (const entry of entries) tree.add(entry, nowMs);
  return tree.root();
}

interface Growing {
  readonly key: string;
  value?: string;
  secret?: true;
  ttl?: number;
  readonly nodes: Map<string, Growing>;
}

class Tree {
  readonly #key: string;
  readonly #nodes = new Map<string, Growing>();
  #entries = 0;
  #bytes = 0;

  constructor(key: string) {
    this.#key = key;
  }

  add({ key, value, secret, expires }: ShownRecord, nowMs: number): void {
    this.#entries += 1;
    this.#bytes += Buffer.byteLength(key) + Buffer.byteLength(value ?? "");
    if (this.#entries > CONFIG_TREE_MAX_ENTRIES || this.#bytes > CONFIG_TREE_MAX_BYTES)
      throw new AppError(
        "too_large",
        `The configuration at ${this.#key} has more than ${CONFIG_TREE_MAX_ENTRIES} entries or ${CONFIG_TREE_MAX_BYTES} bytes: read it by parts, or page by page from /config/list.`,
        { details: { entries: CONFIG_TREE_MAX_ENTRIES, bytes: CONFIG_TREE_MAX_BYTES } },
      );
    const node = this.#node(key);
    if (value !== undefined) node.value = value;
    if (secret) node.secret = true;
    if (expires !== undefined) node.ttl = Math.max(1, Math.ceil((expires - nowMs) / 1_000));
  }

  root(): ConfigNode | undefined {
    const root = this.#nodes.get(this.#key);
    return root && finished(root);
  }

  #node(key: string): Growing {
    const known = this.#nodes.get(key);
    if (known) return known;
    const node: Growing = { key, nodes: new Map() };
    this.#nodes.set(key, node);
    if (key !== this.#key && key !== ROOT) this.#node(parentOf(key)).nodes.set(key, node);
    return node;
  }
}

function finished({ key, value, secret, ttl, nodes }: Growing): ConfigNode {
  return {
    key,
    ...(value !== undefined && { value }),
    ...(secret && { secret }),
    ...(ttl !== undefined && { ttl }),
    ...(nodes.size > 0 && { dir: true, nodes: [...nodes.values()].sort(byKey).map(finished) }),
  };
}

function byKey(one: Growing, other: Growing): number {
  return one.key < other.key ? -1 : 1;
}

/** The directory at the root or the ospace, which exist even without entries; `undefined` for any other key. */
export function emptyDirectory(key: string, ospace: string): ConfigNode | undefined {
  if (key === ospace) return { key, dir: true, nodes: [] };
  return key === ROOT ? { key, dir: true, nodes: [{ key: ospace, dir: true, nodes: [] }] } : undefined;
}
