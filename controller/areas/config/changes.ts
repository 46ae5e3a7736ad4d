import { createHash } from "node:crypto";
import { withinTime } from "../../../common/concurrency.ts";
import { AppError, errorText } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import {
  BLOB_CHUNK_MAX_BYTES,
  CONFIG_CHANGE_ANSWER_MS,
  CONFIG_CHANGE_MAX_KEYS,
  CONFIG_CHANGES_UNDER_WAY_MAX,
  CONFIG_TXN_MAX_BYTES,
  CONFIG_TXN_MAX_KEYS,
} from "../../../common/limits.ts";
import type { JsonBounds } from "../../../common/json-decoder.ts";
import type { Value } from "../../../common/value.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeJson, encodeJson } from "../../turns/decoding.ts";
import { ThreadSlices } from "../../turns/slices.ts";
import { jsonOfStored, storedJson } from "../../store/format.ts";
import { isTransient, Journal, type Controllers, type Versioned, type OpenWork } from "../../store/journal/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { ConfigEntries, Decide } from "./entries.ts";
import { isDelete, type Content } from "./stored.ts";

/** One key of a change with its new content. Without content the key is deleted. */
export interface KeyChange extends Content {
  readonly key: string;
}

/**
 * A change with more keys than one transaction takes, until all of them are written. KvStore: `config-change/<id>`. Its
 * keys and contents are in the BlobStore with the mark `config/<id>`. Until `staged` is true, they may still be missing
 * there.
 */
interface OpenChange extends OpenWork {
  readonly tenant: string;
  readonly by: string;
  readonly digest: string;
  readonly total: number;
  /** Number of keys written so far. The transaction that writes keys updates it. */
  readonly done: number;
  readonly staged: boolean;
}

export interface ChangeDependencies {
  readonly entries: ConfigEntries;
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly controllers: Controllers;
}

/** The content was checked before it was stored, so no bounds are needed. */
const UNBOUNDED = { name: "CONFIG_CHANGE_MAX_KEYS", max: Number.POSITIVE_INFINITY };
const BOUNDS: JsonBounds = {
  depth: UNBOUNDED,
  members: UNBOUNDED,
  elements: UNBOUNDED,
  stringCharacters: UNBOUNDED,
};

/** Estimated bytes that a key adds to a transaction besides its content, for each of its two copies. */
const KEY_OVERHEAD_BYTES = 1_200;

/**
 * Changes many keys, all or nothing. A small change is one transaction. A larger one is journaled before its first key
 * is written. Then this controller, or another one if it stops, writes the whole change, each key once.
 */
export class ConfigChanges {
  readonly #with: ChangeDependencies;
  readonly #journal: Journal<OpenChange>;
  #underWay = 0;

  constructor(dependencies: ChangeDependencies) {
    this.#with = dependencies;
    this.#journal = new Journal(dependencies, { prefix: "config-change/", tenantOf: ({ tenant }) => tenant });
  }

  /**
   * Makes a change. Resolves when every key is written. `AppError("deadline")`: the change is journaled and continues
   * in the background.
   */
  async make(principal: Principal, changes: readonly KeyChange[]): Promise<void> {
    if (changes.length > CONFIG_CHANGE_MAX_KEYS)
      throw new AppError("too_large", `One change takes at most ${CONFIG_CHANGE_MAX_KEYS} keys: make it by parts.`);
    const { tenant, user } = principal;
    const [first, second] = firstTwo(parts(changes));
    if (first === undefined) return;
    if (second === undefined)
      return void (await this.#with.entries.write(tenant, keysOf(first), decisions(first), { by: user }));
    if (this.#underWay >= CONFIG_CHANGES_UNDER_WAY_MAX)
      throw new AppError(
        "limited",
        `At most ${CONFIG_CHANGES_UNDER_WAY_MAX} large changes are under way at once; try again later.`,
      );
    await this.#makeOnRecord(principal, changes);
  }

  /** Continues changes whose controller is gone, and changes that were interrupted on this controller. */
  async maintain(tenant: string): Promise<void> {
    for await (const found of this.#journal.abandoned(tenant)) {
      const mine = await this.#journal.take(found);
      if (mine?.open.staged) this.#start(mine).catch(() => undefined);
      // The caller of an unstaged change saw an error, so drop it.
      else if (mine) await this.#journal.inFlight.carry([mine.open.id], () => this.#forget(mine.open));
    }
  }

  /** Resolves when all changes that run now have ended or paused. */
  settled(): Promise<void> {
    return this.#journal.inFlight.settled();
  }

  /** Pauses running changes after their current transaction. */
  close(): Promise<void> {
    return this.#journal.inFlight.close();
  }

  async #makeOnRecord(principal: Principal, changes: readonly KeyChange[]): Promise<void> {
    const { clock, random } = this.#with.runtime;
    const untilMs = clock.monotonicMs() + CONFIG_CHANGE_ANSWER_MS;
    const id = ulidOf(clock.nowMs(), random.bytes(10));
    const held = await this.#staged(id, principal, changes);
    const done = this.#start(held).then(() => true, restingOrThrow);
    if (await withinTime(clock, done, untilMs - clock.monotonicMs())) return;
    throw new AppError(
      "deadline",
      `The change ${id} of ${counted(changes.length, "key")} is on record and goes on by itself.`,
    );
  }

  async #staged(id: string, principal: Principal, changes: readonly KeyChange[]): Promise<Versioned<OpenChange>> {
    const { inFlight } = this.#journal;
    inFlight.hold(id);
    try {
      return await this.#stage(id, principal, changes);
    } catch (error) {
      inFlight.letGo(id);
      throw error;
    }
  }

  /** Journals the change before it stores the content, so that no content is stored without an entry. */
  async #stage(id: string, { tenant, user }: Principal, changes: readonly KeyChange[]): Promise<Versioned<OpenChange>> {
    const slices = this.#slices(tenant);
    const bytes = storedJson(await encodeJson(changes as unknown as readonly Value[], slices));
    const digest = await digestOf(bytes, slices);
    const work = { id, tenant, by: user, digest, total: changes.length, done: 0, staged: false };
    const begun = await this.#journal.begin(work);
    await (await this.#with.stores.tenant(tenant)).blobs.put(pieces(bytes), markOf(id));
    const staged = await this.#journal.step(begun, { staged: true });
    if (staged) return staged;
    throw new AppError("unavailable", "The change was held up for too long: nothing was written, try again.");
  }

  #start(held: Versioned<OpenChange>): Promise<void> {
    const { id } = held.open;
    this.#underWay += 1;
    const running = this.#journal.inFlight.carry([id], () => this.#run(held)).finally(() => (this.#underWay -= 1));
    running.catch((error: unknown) => {
      const { log } = this.#with.runtime;
      const details = { change: id, reason: errorText(error) };
      if (isTransient(error)) log.warn(details, "a change of configuration rests until the stores take it");
      else log.error({ ...details, err: error }, "a change of configuration broke off");
    });
    return running;
  }

  async #run(mine: Versioned<OpenChange>): Promise<void> {
    let held = mine;
    const { tenant, by, done } = held.open;
    for (const part of parts((await this.#content(held.open)).slice(done))) {
      this.#journal.inFlight.stopping.throwIfAborted();
      const fence = this.#journal.stepWithin(held, { done: held.open.done + part.length });
      const written = await this.#with.entries.write(tenant, keysOf(part), decisions(part), { by, fence });
      if (!written.held) throw taken(held.open);
      held = { open: fence.open, revision: written.revision };
    }
    await this.#forget(held.open);
  }

  async #content({ tenant, digest }: OpenChange): Promise<readonly KeyChange[]> {
    const found: Uint8Array[] = [];
    for await (const bytes of (await this.#with.stores.tenant(tenant)).blobs.read(digest)) found.push(bytes);
    const text = jsonOfStored(Buffer.concat(found));
    return (await decodeJson(text, { slices: this.#slices(tenant), bounds: BOUNDS })) as readonly KeyChange[];
  }

  #slices(tenant: string): ThreadSlices {
    return new ThreadSlices({ tenant, clock: this.#with.runtime.clock, signal: undefined });
  }

  /**
   * Ends a change. Removes the content first: if the controller stops before the entry is removed, another one repeats
   * this.
   */
  async #forget(open: OpenChange): Promise<void> {
    await (await this.#with.stores.tenant(open.tenant)).blobs.unmark(open.digest, markOf(open.id));
    await this.#journal.end(open);
  }
}

function markOf(id: string): string {
  return `config/${id}`;
}

function taken({ id }: OpenChange): AppError {
  return new AppError("unknown_outcome", `Another controller goes on with the change ${id}.`);
}

/** False for a change that was interrupted by a temporary failure: it continues later. Throws all other errors. */
function restingOrThrow(error: unknown): false {
  if (isTransient(error)) return false;
  throw error;
}

function keysOf(changes: readonly KeyChange[]): readonly string[] {
  return changes.map(({ key }) => key);
}

function decisions(changes: readonly KeyChange[]): (key: string) => Decide {
  const byKey = new Map(changes.map((change) => [change.key, change]));
  return (key) => (found) => {
    const { text, sealed, expiresAtMs } = byKey.get(key) ?? {};
    const content = {
      ...(text !== undefined && { text }),
      ...(sealed !== undefined && { sealed }),
      ...(expiresAtMs !== undefined && { expiresAtMs }),
    };
    if (isDelete(content)) return found && "delete";
    return found && isSame(found, content) ? undefined : content;
  };
}

export function isSame(one: Content, other: Content): boolean {
  return one.text === other.text && one.sealed === other.sealed && one.expiresAtMs === other.expiresAtMs;
}

/**
 * Splits the changes, in their order, into parts for one transaction each. Parts are computed on demand, because it
 * takes a while to measure all changes.
 */
function* parts(changes: readonly KeyChange[]): Generator<readonly KeyChange[]> {
  let part: KeyChange[] = [];
  let bytes = 0;
  for (const change of changes) {
    const size = 2 * (Buffer.byteLength(JSON.stringify(change)) + KEY_OVERHEAD_BYTES);
    if (part.length > 0 && (part.length >= CONFIG_TXN_MAX_KEYS || bytes + size > CONFIG_TXN_MAX_BYTES)) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(change);
    bytes += size;
  }
  if (part.length > 0) yield part;
}

function firstTwo<T>(all: Iterator<T>): readonly [T | undefined, T | undefined] {
  const next = (): T | undefined => {
    const { done, value } = all.next();
    return done === true ? undefined : value;
  };
  return [next(), next()];
}

async function digestOf(bytes: Uint8Array, slices: ThreadSlices): Promise<string> {
  const hash = createHash("sha256");
  for (const piece of pieces(bytes)) {
    hash.update(piece);
    if (slices.isOverNow()) await slices.pause();
  }
  return hash.digest("hex");
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += BLOB_CHUNK_MAX_BYTES) yield bytes.subarray(at, at + BLOB_CHUNK_MAX_BYTES);
}
