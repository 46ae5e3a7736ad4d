import { createHash } from "node:crypto";
import { AppError } from "../../common/errors.ts";
import type { Random } from "../../common/time.ts";
import type { BlobStore } from "./blobs.ts";
import { cellMap, isChosen, SingleCells } from "./cells.ts";
import { checkBatch, checkChange, checkRecord } from "./checks.ts";
import type { Engine, TenantStore } from "./engine.ts";
import type { KvEvent, KvStore } from "./kv.ts";
import type {
  CellChoice,
  Entity,
  EntityChange,
  EntityKey,
  FindRequest,
  ObjectStore,
  Page,
  PageRequest,
  RecordsInCommit,
  TimelineRequest,
} from "./objects.ts";
import type { ScrubStore } from "./scrub.ts";

export interface FaultyOptions {
  /** A seeded generator replays the same faults for the same calls. */
  readonly random: Random;
  /** Probability that a call fails, from 0 to 1. */
  readonly faultRate?: number;
}

const FAULT_RATE = 0.08;
const DELAY_MAX_HOPS = 6;
const EMPTY_PAGE_RATE = 0.2;
const SUPERSET_RATE = 0.3;

/**
 * The same engine with every fault that the seams allow: reordered calls, outages, writes with unknown outcome, tiny
 * and empty pages, and results that do not match the request. Code that works on it works on a failing cluster.
 */
export function faulty(engine: Engine, options: FaultyOptions): Engine {
  const wrapped = new Map<TenantStore, TenantStore>();
  const wrap = (store: TenantStore): TenantStore => {
    const known = wrapped.get(store) ?? faultyStore(store, options);
    wrapped.set(store, known);
    return known;
  };
  return {
    kind: engine.kind,
    isRemote: engine.isRemote,
    system: async () => wrap(await engine.system()),
    tenant: async (name) => wrap(await engine.tenant(name)),
    createTenant: (name, tenantOptions) => engine.createTenant(name, tenantOptions),
    dropTenant: (name) => engine.dropTenant(name),
    releaseTenant: (name) => engine.releaseTenant(name),
    nodes: () => engine.nodes(),
    ready: () => engine.ready(),
    close: () => engine.close(),
  };
}

export function faultyStore(store: TenantStore, options: FaultyOptions): TenantStore {
  const faults = new Faults(options);
  return {
    kv: faultyKv(store.kv, faults),
    objects: {
      ...(store.objects.spansSeams === true && { spansSeams: true }),
      ...faultyObjects(store.objects, faults),
    },
    blobs: faultyBlobs(store.blobs, faults),
    scrub: faultyScrub(store.scrub, faults),
  };
}

class Faults {
  readonly #random: Random;
  readonly #rate: number;

  constructor(options: FaultyOptions) {
    this.#random = options.random;
    this.#rate = options.faultRate ?? FAULT_RATE;
  }

  happens(rate: number): boolean {
    return this.#random.next() < rate;
  }

  /** A number from 1 to `most`. */
  some(most: number): number {
    return 1 + Math.floor(this.#random.next() * most);
  }

  /** Lets other calls run first. */
  async delay(): Promise<void> {
    for (let hops = this.some(DELAY_MAX_HOPS); hops > 1; hops--) await Promise.resolve();
  }

  async read<T>(action: () => Promise<T>): Promise<T> {
    await this.delay();
    if (this.happens(this.#rate)) throw away();
    return action();
  }

  /** Runs `partly` instead of `action` when the outcome stays unknown and the action did not complete. */
  async write<T>(action: () => Promise<T>, partly?: () => Promise<unknown>): Promise<T> {
    await this.delay();
    if (this.happens(this.#rate)) throw away();
    if (!this.happens(this.#rate)) return action();
    if (this.happens(0.5)) await action();
    else await partly?.();
    throw new AppError("unknown_outcome", "The answer was lost (a fault on purpose).");
  }
}

function away(): AppError {
  return new AppError("unavailable", "The store is away (a fault on purpose).");
}

function faultyKv(kv: KvStore, faults: Faults): KvStore {
  return {
    get: (key) => faults.read(() => kv.get(key)),
    put: (key, value, options) => faults.write(() => kv.put(key, value, options)),
    delete: (key, options) => faults.write(() => kv.delete(key, options)),
    list: (prefix, options = {}) =>
      faults.read(async () => {
        const { after = "", limit } = options;
        const page = await kv.list(
          prefix,
          limit === undefined ? options : { ...options, limit: shorter(limit, faults) },
        );
        return faults.happens(EMPTY_PAGE_RATE) ? { entries: [], revision: page.revision, next: after } : page;
      }),
    watch: (prefix, options) => slowWatch(kv.watch(prefix, options), faults),
    // A grant is only refused. Its answer is never lost: the lease would renew itself until the process ends.
    lease: (ttlMs) =>
      faults.read(async () => {
        const lease = await kv.lease(ttlMs);
        return {
          id: lease.id,
          lost: lease.lost,
          held: () => lease.held(),
          revoke: () => faults.write(() => lease.revoke()),
        };
      }),
    txn: (request) => faults.write(() => kv.txn(request)),
  };
}

/** Yields each revision separately and late. */
async function* slowWatch(
  events: AsyncIterable<readonly KvEvent[]>,
  faults: Faults,
): AsyncIterable<readonly KvEvent[]> {
  for await (const batch of events) {
    for (const revision of new Set(batch.map(revisionOf))) {
      await faults.delay();
      yield batch.filter((event) => revisionOf(event) === revision);
    }
  }
}

function revisionOf(event: KvEvent): number {
  return event.kind === "put" ? event.entry.revision : event.revision;
}

function faultyObjects(objects: ObjectStore, faults: Faults): ObjectStore {
  const leftovers = new Leftovers();
  const made = async (changes: readonly EntityChange[], inCommit?: RecordsInCommit): Promise<void> => {
    await objects.change(leftovers.due(changes));
    await objects.change(changes, inCommit);
  };
  const paging =
    <T>(
      name: string,
      read: (page: PageRequest, kept: number) => Promise<Page<T>>,
      conditions?: readonly [count: number, least: number],
    ) =>
    (page: PageRequest): Promise<Page<T>> =>
      faults.read(() => nastyPage({ faults, name, read, conditions: conditions ?? [0, 0] }, page));
  return {
    async change(changes, inCommit) {
      // An invalid batch is refused as a whole, never done in part.
      checkBatch(changes.length);
      changes.forEach(checkChange);
      await faults.write(
        () => made(changes, inCommit),
        () => made(leftovers.part(inCommit?.also ? [] : changes, faults.some(changes.length + 1) - 1)),
      );
    },
    get: (keys, cells) =>
      faults.read(async () =>
        (await objects.get(keys, cells)).map((entity) =>
          entity === undefined ? undefined : onlyChosen(entity, cells),
        ),
      ),
    trace: (keys) => faults.read(() => objects.trace(keys)),
    find: (request, page) =>
      paging(
        JSON.stringify(["find", request]),
        async (inner, kept) => {
          const found = await objects.find(fewer(request, kept), inner);
          const items = found.items.map((entity) => onlyChosen(entity, request.cells));
          return found.cursor === undefined ? { items } : { items, cursor: found.cursor };
        },
        kept(request),
      )(page),
    estimate: (request) => faults.read(() => objects.estimate(request)),
    countClass: (term, cursor) => faults.read(() => objects.countClass(term, cursor)),
    countRecords: (span, cursor) => faults.read(() => objects.countRecords(span, cursor)),
    terms: (request, page) => faults.read(() => objects.terms(request, page)),
    scan: paging("scan", (inner) => objects.scan(inner)),
    history: (key, range, page) =>
      paging(JSON.stringify(["history", key, range]), (inner) => objects.history(key, range, inner))(page),
    edges: (key, direction, { type, ...page }) =>
      paging(JSON.stringify(["edges", key, direction, type]), (inner) =>
        objects.edges(key, direction, type === undefined ? inner : { ...inner, type }),
      )(page),
    async append(records, inCommit) {
      checkBatch(records.length);
      records.forEach(checkRecord);
      await faults.write(
        () => objects.append(records, inCommit),
        () => objects.append(records.slice(0, faults.some(records.length + 1) - 1)),
      );
    },
    timeline: (request, page) =>
      paging(JSON.stringify(["timeline", request]), (inner, count) => objects.timeline(fewer(request, count), inner), [
        request.terms?.length ?? 0,
        0,
      ])(page),
    getRecords: (keys) => faults.read(() => objects.getRecords(keys)),
    removeRecords: (keys) => faults.write(() => objects.removeRecords(keys)),
  };
}

/** The entity with only the cells that were asked for. */
function onlyChosen(entity: Entity, choice: CellChoice | undefined): Entity {
  if (choice === undefined) return entity;
  const { key, birthUs, lastUs, diedUs, endsAtMs, numbers } = entity;
  const cells = new SingleCells(new Map([...cellMap(entity.cells)].filter(([name]) => isChosen(name, choice))));
  return { key, birthUs, lastUs, diedUs, endsAtMs, numbers, cells };
}

/** Remains of changes that were abandoned halfway: their versions and edges, which appear with a later change. */
class Leftovers {
  readonly #byKey = new Map<string, readonly EntityChange[]>();

  /** The part of the changes that is made when they are abandoned after the first `count`. */
  part(changes: readonly EntityChange[], count: number): readonly EntityChange[] {
    const whole = changes.slice(0, count);
    const halfway = changes[count];
    if (halfway === undefined) return whole;
    const { dropEdges = [], ...before } = halfway;
    if (dropEdges.length > 0) return [...whole, before];
    this.#keep(halfway);
    return whole;
  }

  /** The remains that appear with these changes. A change that is completed at last leaves no remains. */
  due(changes: readonly EntityChange[]): readonly EntityChange[] {
    return changes.flatMap(({ key, timeUs }) => {
      const left = this.#of(key);
      this.#byKey.set(
        keyText(key),
        left.filter((change) => change.timeUs > timeUs),
      );
      return left.filter((change) => change.timeUs < timeUs);
    });
  }

  #keep({ key, timeUs, version, addEdges = [], expiresAtMs }: EntityChange): void {
    if (version === undefined && addEdges.length === 0) return;
    const left = {
      key,
      timeUs,
      addEdges,
      ...(version === undefined ? {} : { version }),
      ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    };
    this.#byKey.set(keyText(key), [...this.#of(key), left]);
  }

  #of(key: EntityKey): readonly EntityChange[] {
    return this.#byKey.get(keyText(key)) ?? [];
  }
}

function keyText({ cid, id }: EntityKey): string {
  return `${cid}:${id}`;
}

/** The number of terms, and the minimum to keep so that at least one condition remains. */
function kept(request: FindRequest): readonly [number, number] {
  return [request.terms.length, (request.ranges ?? []).length > 0 ? 0 : 1];
}

/** Keeps only the first terms: a request with fewer terms finds more. */
function fewer<T extends FindRequest | TimelineRequest>(request: T, count: number): T {
  return request.terms === undefined ? request : { ...request, terms: request.terms.slice(0, count) };
}

/** A shorter limit. An invalid limit stays unchanged, so that the engine refuses it. */
function shorter(limit: number, faults: Faults): number {
  return Number.isInteger(limit) && limit >= 1 && limit <= 1_000 ? faults.some(limit) : limit;
}

interface NastyPage<T> {
  readonly faults: Faults;
  /** Identifies the request in its cursors. */
  readonly name: string;
  readonly read: (page: PageRequest, kept: number) => Promise<Page<T>>;
  readonly conditions: readonly [count: number, least: number];
}

/**
 * Uses its own cursors: the number of conditions that the first page kept, a mark of the request, and the engine's
 * cursor.
 */
async function nastyPage<T>({ faults, name, read, conditions }: NastyPage<T>, page: PageRequest): Promise<Page<T>> {
  const [count, least] = conditions;
  const mark = createHash("sha256").update(name).digest("hex").slice(0, 8);
  const [, keptText, cursorMark, inner = ""] = page.cursor?.split("~") ?? ["", undefined, mark, ""];
  if (page.cursor !== undefined && (cursorMark !== mark || keptText === undefined))
    throw new AppError("invalid", "This cursor does not belong to this request.");
  const kept =
    keptText === undefined ? (faults.happens(SUPERSET_RATE) && count > least ? count - 1 : count) : Number(keptText);
  const outer = (place: string): string => `~${kept}~${mark}~${place}`;
  const limit = shorter(page.limit, faults);
  const request = inner === "" ? { limit } : { limit, cursor: inner };
  if (faults.happens(EMPTY_PAGE_RATE) && limit !== page.limit) return { items: [], cursor: outer(inner) };
  const answer = await read(request, kept);
  return answer.cursor === undefined ? answer : { items: answer.items, cursor: outer(answer.cursor) };
}

function faultyScrub(scrub: ScrubStore, faults: Faults): ScrubStore {
  return {
    postings: (page) => faults.read(() => scrub.postings(page)),
    ended: (page) => faults.read(() => scrub.ended(page)),
    endingInParts: (page) => faults.read(() => scrub.endingInParts(page)),
    missing: (entities) => faults.read(() => scrub.missing(entities)),
    add: (changes) => faults.write(() => scrub.add(changes)),
    remove: (postings) => faults.write(() => scrub.remove(postings)),
    edges: (from, page) => faults.write(() => scrub.edges(from, page)),
    contents: (page) => faults.read(() => scrub.contents(page)),
    verify: (digest, paced) => faults.read(() => scrub.verify(digest, paced)),
    rows: (page) => faults.read(() => scrub.rows(page)),
    repairs: () => faults.read(() => scrub.repairs()),
  };
}

function faultyBlobs(blobs: BlobStore, faults: Faults): BlobStore {
  return {
    put: (...content) => faults.write(() => blobs.put(...content)),
    stat: (digest) => faults.read(() => blobs.stat(digest)),
    read: (digest, range) => faultyRead(blobs.read(digest, range), faults),
    mark: (digest, owner) => faults.write(() => blobs.mark(digest, owner)),
    unmark: (digest, owner) => faults.write(() => blobs.unmark(digest, owner)),
    sweep: (graceMs) => faults.read(() => blobs.sweep(graceMs)),
    append: (stream, offset, bytes) =>
      faults.write(
        () => blobs.append(stream, offset, bytes),
        () => blobs.append(stream, offset, bytes.subarray(0, faults.some(bytes.length + 1) - 1)),
      ),
    readStream: (stream, offset, maxBytes) =>
      faults.read(() => blobs.readStream(stream, offset, Math.min(maxBytes, faults.some(maxBytes)))),
    removeStream: (stream) => faults.write(() => blobs.removeStream(stream)),
  };
}

async function* faultyRead(bytes: AsyncIterable<Uint8Array>, faults: Faults): AsyncIterable<Uint8Array> {
  for await (const piece of bytes) {
    const cut = faults.some(piece.length);
    yield await faults.read(async () => piece.subarray(0, cut));
    if (cut < piece.length) yield await faults.read(async () => piece.subarray(cut));
  }
}
