import { createHash } from "node:crypto";
import { AppError } from "../../common/errors.ts";
import type { BlobStore } from "../../controller/store/blobs.ts";
import type { Stores, TenantStore } from "../../controller/store/engine.ts";
import type { KvCondition, KvEntry, KvStore } from "../../controller/store/kv.ts";

/**
 * KvStore and BlobStore in memory for area tests that need neither engine nor disk. Watches and leases are left out: who uses
 * them is tested on a real engine.
 */
export class MemoryStores implements Stores {
  readonly #tenants = new Map<string, MemoryTenant>();

  tenant(name: string): Promise<MemoryTenant> {
    const tenant = this.#tenants.get(name) ?? { kv: new MemoryKv(), blobs: new MemoryBlobs(), objects: missing("objects") };
    this.#tenants.set(name, tenant);
    return Promise.resolve(tenant);
  }

  system(): Promise<TenantStore> {
    return this.tenant("system");
  }
}

interface MemoryTenant extends TenantStore {
  readonly kv: MemoryKv;
  readonly blobs: MemoryBlobs;
}

export class MemoryKv implements KvStore {
  readonly entries = new Map<string, KvEntry>();
  #revision = 0;

  get(key: string): Promise<KvEntry | undefined> {
    return Promise.resolve(this.entries.get(key));
  }

  async put(key: string, value: Uint8Array, options: { readonly ifRevision?: number } = {}) {
    const current = this.entries.get(key);
    if (options.ifRevision !== undefined && options.ifRevision !== (current?.revision ?? 0)) return { ok: false as const, current };
    const revision = ++this.#revision;
    this.entries.set(key, { key, value, revision, createRevision: current?.createRevision ?? revision });
    return Promise.resolve({ ok: true as const, revision });
  }

  async delete(key: string, options: { readonly ifRevision?: number } = {}) {
    const current = this.entries.get(key);
    if (options.ifRevision !== undefined && options.ifRevision !== (current?.revision ?? 0)) return { ok: false as const, current };
    this.entries.delete(key);
    return Promise.resolve({ ok: true as const, revision: ++this.#revision });
  }

  /** Pages of three, so that nobody forgets to read on. */
  list(prefix: string, options: { readonly after?: string; readonly limit?: number } = {}) {
    const keys = [...this.entries.keys()].filter((key) => key.startsWith(prefix) && key > (options.after ?? "")).sort();
    const page = keys.slice(0, Math.min(options.limit ?? 3, 3));
    const entries = page.flatMap((key) => this.entries.get(key) ?? []);
    const last = page.at(-1);
    return Promise.resolve({ entries, revision: this.#revision, ...(page.length < keys.length && last !== undefined ? { next: last } : {}) });
  }

  txn(request: Parameters<KvStore["txn"]>[0]) {
    if (!request.if.every((condition) => this.#holds(condition))) return Promise.resolve({ ok: false, revision: this.#revision });
    const revision = ++this.#revision;
    for (const operation of request.then) {
      const { key } = operation;
      const createRevision = this.entries.get(key)?.createRevision ?? revision;
      if (operation.kind === "put") this.entries.set(key, { key, value: operation.value, revision, createRevision });
      else this.entries.delete(key);
    }
    return Promise.resolve({ ok: true, revision });
  }

  watch(): never {
    throw new Error("not in this fake");
  }

  lease(): never {
    throw new Error("not in this fake");
  }

  #holds(condition: KvCondition): boolean {
    const entry = this.entries.get(condition.key);
    if ("createRevision" in condition) return condition.createRevision === (entry?.createRevision ?? 0);
    return condition.revision === (entry?.revision ?? 0);
  }
}

export class MemoryBlobs implements BlobStore {
  readonly contents = new Map<string, Buffer>();
  readonly marks = new Map<string, Set<string>>();
  readonly streams = new Map<string, Buffer>();

  async put(bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, owner: string) {
    const pieces: Uint8Array[] = [];
    for await (const piece of bytes) pieces.push(piece);
    const content = Buffer.concat(pieces);
    const digest = createHash("sha256").update(content).digest("hex");
    this.contents.set(digest, content);
    await this.mark(digest, owner);
    return { digest, size: content.length };
  }

  stat(digest: string) {
    const content = this.contents.get(digest);
    return Promise.resolve(content && { digest, size: content.length });
  }

  async *read(digest: string) {
    const content = this.contents.get(digest);
    if (content === undefined) throw new AppError("not_found", `There is no content ${digest}.`);
    yield await Promise.resolve(content);
  }

  mark(digest: string, owner: string) {
    const owners = this.marks.get(digest) ?? new Set();
    this.marks.set(digest, owners.add(owner));
    return Promise.resolve();
  }

  unmark(digest: string, owner: string) {
    this.marks.get(digest)?.delete(owner);
    return Promise.resolve();
  }

  sweep() {
    let removed = 0;
    for (const [digest, owners] of this.marks) if (owners.size === 0 && this.contents.delete(digest)) removed++;
    return Promise.resolve(removed);
  }

  append(stream: string, offset: number, bytes: Uint8Array) {
    const now = this.streams.get(stream) ?? Buffer.alloc(0);
    const same = now.subarray(offset, offset + bytes.length).equals(bytes);
    if (offset !== now.length && !same) throw new AppError("conflict", "other bytes are there");
    if (offset === now.length) this.streams.set(stream, Buffer.concat([now, bytes]));
    return Promise.resolve({ size: this.streams.get(stream)?.length ?? 0 });
  }

  readStream(stream: string, offset: number, maxBytes: number) {
    const now = this.streams.get(stream) ?? Buffer.alloc(0);
    return Promise.resolve({ bytes: now.subarray(offset, offset + maxBytes), size: now.length });
  }

  removeStream(stream: string) {
    this.streams.delete(stream);
    return Promise.resolve();
  }
}

function missing(name: string): never {
  return new Proxy({}, { get: (_target, member) => { throw new Error(`${name}.${String(member)} is not in this fake`); } }) as never;
}
