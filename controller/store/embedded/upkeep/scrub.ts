import { isAppError } from "../../../../common/errors.ts";
import { SCRUB_AGE_MIN_MS } from "../../../../common/limits.ts";
import { decodeStored, encodePacked } from "../../format.ts";
import type { BlobInfo } from "../../blobs.ts";
import type { Entity, EntityChange, EntityKey, Page, PageRequest } from "../../objects.ts";
import type {
  ContentState,
  EdgeCheck,
  EndingInParts,
  Posting,
  RowsRead,
  ScrubStore,
  TableRepair,
  TermsOf,
} from "../../scrub.ts";
import { indexedTerms } from "../../terms.ts";
import { Cursors } from "../cursor.ts";
import { mirrorKey, sourceKey, type PackedEdge } from "../entities/edges.ts";
import { decodeEntity } from "../entities/form.ts";
import type { EntityState } from "../entities/state.ts";
import type { Environment } from "../environment/environment.ts";
import { bytesText, following, textBytes } from "../bytes/keys.ts";
import { entityKeyBytes, numberKey, parseEntityKey } from "../bytes/object-keys.ts";
import { RowCheck } from "./row-check.ts";
import { FIRST_KEY, placeOf, rowsOfTerms } from "../entities/term-rows.ts";
import type { EmbeddedBlobStore } from "../blobs/blobs.ts";
import type { EmbeddedObjectStore } from "../objects.ts";

const PRESENT = encodePacked(1);

export interface EmbeddedScrubParts {
  readonly env: Environment;
  readonly objects: EmbeddedObjectStore;
  readonly blobs: EmbeddedBlobStore;
  /** Identifies this store in cursors. */
  readonly place: string;
  readonly nowMs: () => number;
}

/**
 * Scrubs the store of one tenant. Indexes are committed together with their source data, so every fault that it finds
 * comes from damage or from a defect of the program.
 */
export class EmbeddedScrub implements ScrubStore {
  readonly #of: EmbeddedScrubParts;
  readonly #rows: RowCheck;

  constructor(parts: EmbeddedScrubParts) {
    this.#of = parts;
    this.#rows = new RowCheck(parts);
  }

  async postings(page: PageRequest): Promise<Page<Posting>> {
    const cursors = new Cursors([this.#of.place, "scrub", "postings"]);
    const after = cursors.read(page);
    const items: Posting[] = [];
    for (const { term, bytes } of rowsOfTerms(this.#of.env.read().terms, after)) {
      const key = parseEntityKey(bytes);
      items.push({ term, key, timeUs: this.#state(key)?.terms.get(term)?.timeUs ?? 0 });
      if (items.length === page.limit) return { items, cursor: cursors.write(placeOf(term, bytes)) };
    }
    return { items };
  }

  /** Empty: the engine itself cleans up ended entities. */
  async ended(): Promise<Page<Entity>> {
    return { items: [] };
  }

  async endingInParts(page: PageRequest): Promise<Page<EndingInParts>> {
    const { items, cursor } = await this.#of.objects.scan(page);
    const found = items.flatMap((entity) => {
      const endsAtMs = this.#state(entity.key)?.lastPartEndsAtMs();
      return endsAtMs === undefined ? [] : [{ entity, endsAtMs }];
    });
    return cursor === undefined ? { items: found } : { items: found, cursor };
  }

  async missing(entities: readonly TermsOf[]): Promise<readonly (readonly string[])[]> {
    return entities.map(({ entity: { key }, terms }) => {
      const state = this.#state(key);
      if (state === undefined || state.birthUs === 0) return [];
      const tables = this.#of.env.read();
      const bytes = entityKeyBytes(key);
      const own = state.indexed();
      const all = new Set([...indexedTerms(terms), ...own.terms]);
      return [
        ...[...all].filter((term) => !tables.terms.doesExist(term, bytes)),
        ...numberKeys(own.numbers, bytes)
          .filter(({ row }) => !tables.numbers.doesExist(row))
          .map(({ slot }) => `number ${slot}`),
      ];
    });
  }

  async add(changes: readonly EntityChange[]): Promise<void> {
    const timeUs = this.#of.nowMs() * 1_000;
    const numbered = changes.map(({ addTerms: _terms, ...change }) => change);
    const borne = changes.map(({ numbers: _numbers, ...change }) => ({ ...change, timeUs }));
    await this.#of.objects.change([...numbered, ...borne]);
    await this.#of.env.write(() => changes.forEach(({ key }) => this.#complete(key)));
  }

  async remove(postings: readonly Posting[]): Promise<void> {
    const { env, objects } = this.#of;
    await env.write(() => {
      for (const posting of postings)
        if (this.#state(posting.key)?.indexed().terms.has(posting.term)) objects.forgetTerm(posting);
        else void env.tables.terms.remove(posting.term, entityKeyBytes(posting.key));
    });
  }

  async edges(from: "source" | "target", page: PageRequest & { readonly beforeUs: number }): Promise<EdgeCheck> {
    const cursors = new Cursors([this.#of.place, "scrub", "edges", from]);
    const after = cursors.read(page);
    const start = after === undefined ? FIRST_KEY : following(after);
    const table = from === "source" ? "edgesOut" : "edgesIn";
    const rows = [...this.#of.env.read()[table].getRange({ start, limit: page.limit })];
    const wrong: string[] = [];
    await this.#of.env.write(() => {
      for (const { key, value } of rows) {
        const edge = decodeStored<PackedEdge>(value);
        const mended = from === "source" ? this.#addAtTarget(key, edge) : this.#removeAtTarget(key, edge);
        if (mended) wrong.push(`${from === "source" ? "missing" : "superfluous"}: ${textOf(edge)}`);
      }
    });
    const [missing, superfluous] = from === "source" ? [wrong.length, 0] : [0, wrong.length];
    const checked = { looked: rows.length, missing, superfluous, examples: wrong };
    const last = rows.at(-1);
    return last === undefined || rows.length < page.limit ? checked : { ...checked, cursor: cursors.write(last.key) };
  }

  async contents(page: PageRequest): Promise<Page<BlobInfo>> {
    const cursors = new Cursors([this.#of.place, "scrub", "contents"]);
    const after = cursors.read(page);
    const start = after === undefined ? FIRST_KEY : following(after);
    const keys = [...this.#of.env.read().blobs.getKeys({ start, limit: page.limit })];
    const items: BlobInfo[] = [];
    for (const key of keys) {
      const digest = bytesText(key);
      items.push((await this.#of.blobs.stat(digest)) ?? { digest, size: 0 });
    }
    const last = keys.at(-1);
    return last === undefined || keys.length < page.limit ? { items } : { items, cursor: cursors.write(last) };
  }

  rows(page: { readonly cursor?: string; readonly isPassing?: boolean }): Promise<RowsRead> {
    return this.#rows.rows(page);
  }

  /** Empty: there is only one copy of everything. */
  repairs(): Promise<readonly TableRepair[]> {
    return Promise.resolve([]);
  }

  async verify(digest: string, paced: (bytes: number) => Promise<void>): Promise<ContentState> {
    const { blobs, env } = this.#of;
    try {
      for await (const part of blobs.read(digest)) await paced(part.length);
      return "sound";
    } catch (error) {
      if (!isAppError(error, "not_found", "unavailable")) throw error;
      const row = env.read().blobs.get(textBytes(digest));
      if (row === undefined) return "gone";
      // During an upload, the row of a content exists before its file.
      const isYoung = decodeStored<number>(row) + SCRUB_AGE_MIN_MS > this.#of.nowMs();
      return error.code === "not_found" && isYoung ? "gone" : "damaged";
    }
  }

  #state(key: EntityKey): EntityState | undefined {
    const stored = this.#of.env.read().objects.get(entityKeyBytes(key));
    return stored === undefined ? undefined : decodeEntity(stored);
  }

  /** Call it inside a write transaction. */
  #complete(key: EntityKey): void {
    const { terms, numbers } = this.#of.env.tables;
    const bytes = entityKeyBytes(key);
    const own = this.#state(key)?.indexed();
    if (own === undefined) return;
    for (const term of own.terms) if (!terms.doesExist(term, bytes)) void terms.put(term, bytes);
    for (const { row } of numberKeys(own.numbers, bytes)) if (!numbers.doesExist(row)) void numbers.put(row, PRESENT);
  }

  /** Call it inside a write transaction. Adds the edge as it is now. */
  #addAtTarget(key: Uint8Array, found: PackedEdge): boolean {
    const { edgesOut, edgesIn } = this.#of.env.tables;
    const stored = edgesOut.get(key);
    const mirror = mirrorKey(found);
    if (stored === undefined || !decodeStored<PackedEdge>(stored)[7] || edgesIn.doesExist(mirror)) return false;
    edgesIn.put(mirror, stored);
    return true;
  }

  /** Call it inside a write transaction. */
  #removeAtTarget(key: Uint8Array, found: PackedEdge): boolean {
    const { edgesOut, edgesIn } = this.#of.env.tables;
    const stored = edgesOut.get(sourceKey(found));
    if (!edgesIn.doesExist(key) || (stored !== undefined && decodeStored<PackedEdge>(stored)[7])) return false;
    edgesIn.remove(key);
    return true;
  }
}

function numberKeys(
  numbers: readonly (number | undefined)[],
  bytes: Uint8Array,
): { readonly slot: number; readonly row: Uint8Array }[] {
  return numbers.flatMap((number, slot) =>
    number === undefined ? [] : [{ slot, row: numberKey(slot, number, bytes) }],
  );
}

function textOf([type, fromCid, fromId, toCid, toId]: PackedEdge): string {
  return `edge ${type} from ${fromCid}:${fromId} to ${toCid}:${toId}`;
}
