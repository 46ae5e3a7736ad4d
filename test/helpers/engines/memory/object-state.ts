import { ulidTimeMs } from "../../../../common/ids.ts";
import { NUMBER_SLOTS, OBJECT_TOMBSTONE_KEEP_MS, VERSIONS_ENDED_MAX } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { NO_CELLS, SingleCells } from "../../../../controller/store/cells.ts";
import { decodeEntity, encodeEntity } from "../../../../controller/store/embedded/entities/form.ts";
import { EntityState } from "../../../../controller/store/embedded/entities/state.ts";
import { indexedTerms } from "../../../../controller/store/terms.ts";
import type {
  Cells,
  Edge,
  EdgeEnd,
  Entity,
  EntityChange,
  EntityKey,
  EntityTrace,
  EntityVersion,
  RemovedRecord,
  StoredCell,
  StoredRecord,
  TermsRequest,
  TimelineRequest,
  TimeRangeUs,
} from "../../../../controller/store/objects.ts";

interface EdgeMark {
  readonly end: EdgeEnd;
  readonly timeUs: number;
  readonly present: boolean;
  /** 0: never. */
  readonly expiresAtMs: number;
}

interface Version extends EntityVersion {
  readonly expiresAtMs: number;
  readonly stays: boolean;
}

interface Kept {
  readonly key: EntityKey;
  readonly state: EntityState;
  readonly edges: Map<string, EdgeMark>;
  readonly versions: Map<number, Version>;
}

/** Objects of one tenant in maps. Cells merge with the code of the embedded engine; everything else is simple loops. */
export class MemoryObjectState {
  readonly #clock: Clock;
  readonly #entities = new Map<string, Kept>();
  readonly #records = new Map<number, Map<string, StoredRecord>>();
  /** Ids of removed records. Until `untilMs` they accept only records that were rewritten later. */
  readonly #removals = new Map<string, { readonly untilMs: number; readonly rewrittenUs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  fork(clock: Clock): MemoryObjectState {
    const copy = new MemoryObjectState(clock);
    for (const [name, { key, state, edges, versions }] of this.#entities) {
      copy.#entities.set(name, {
        key,
        state: decodeEntity(encodeEntity(state)),
        edges: new Map(edges),
        versions: new Map(versions),
      });
    }
    for (const [cid, records] of this.#records) copy.#records.set(cid, new Map(records));
    for (const [name, removal] of this.#removals) copy.#removals.set(name, removal);
    return copy;
  }

  /** Sorted by their characters. */
  terms({ beginning, cid }: TermsRequest): readonly string[] {
    const borne =
      cid === undefined
        ? Array.from(this.#entities.values()).flatMap(({ state }) => [...state.indexed().terms])
        : Array.from(this.#records.get(cid)?.values() ?? []).flatMap(({ terms }) => terms);
    return [...new Set(indexedTerms(borne))].filter((term) => term.startsWith(beginning)).sort();
  }

  change(changes: readonly EntityChange[]): void {
    const nowMs = this.#clock.nowMs();
    for (const change of changes) {
      const kept = this.#entity(change.key);
      kept.state.apply(change, nowMs);
      const expiresAtMs = change.expiresAtMs ?? 0;
      const { timeUs } = change;
      for (const end of change.addEdges ?? []) mergeEdge(kept.edges, { end, timeUs, present: true, expiresAtMs });
      for (const end of change.dropEdges ?? []) mergeEdge(kept.edges, { end, timeUs, present: false, expiresAtMs: 0 });
      const stays = change.versionStays === true;
      if (change.version !== undefined) {
        const untilMs = change.versionExpiresAtMs ?? expiresAtMs;
        kept.versions.set(timeUs, { timeUs, value: change.version, expiresAtMs: untilMs, stays });
      }
      if (change.endVersionsAtMs !== undefined) endVersions(kept.versions, timeUs, change.endVersionsAtMs);
    }
  }

  get(key: EntityKey): Entity | undefined {
    const kept = this.#entities.get(nameOf(key));
    return kept && this.#visible(kept);
  }

  trace(key: EntityKey): EntityTrace {
    const kept = this.#entities.get(nameOf(key));
    if (kept === undefined) return { entity: undefined, lastUs: 0, leftover: NO_CELLS };
    const entity = this.#visible(kept);
    const lastUs = Math.max(kept.state.deathUs, kept.state.lastUs());
    return {
      entity,
      lastUs: entity?.lastUs ?? lastUs,
      leftover: entity === undefined ? cellsOf(kept.state) : NO_CELLS,
      ...(entity === undefined && kept.state.endedUs > 0 ? { endedUs: kept.state.endedUs } : {}),
    };
  }

  /** Living entities sorted by name. */
  living(
    accepts: (entity: Entity, state: EntityState) => boolean,
  ): readonly (readonly [name: string, entity: Entity])[] {
    const names = [...this.#entities.keys()].sort();
    return names.flatMap((name) => {
      const kept = this.#entities.get(name);
      const entity = kept && this.#visible(kept);
      return kept && entity && accepts(entity, kept.state) ? [[name, entity] as const] : [];
    });
  }

  /** Newest first. */
  versions(key: EntityKey, { fromUs = 0, toUs = Infinity }: TimeRangeUs): readonly Version[] {
    const nowMs = this.#clock.nowMs();
    const kept = this.#entities.get(nameOf(key));
    const alive = [...(kept?.versions.values() ?? [])].filter(
      ({ timeUs, expiresAtMs }) =>
        timeUs >= fromUs && timeUs <= toUs && timeUs > (kept?.state.forgottenUs ?? 0) && !over(expiresAtMs, nowMs),
    );
    return alive.sort((a, b) => b.timeUs - a.timeUs);
  }

  edges(
    key: EntityKey,
    direction: "out" | "in",
    type: string | undefined,
  ): readonly (readonly [name: string, edge: Edge])[] {
    const sources = direction === "out" ? [this.#entities.get(nameOf(key))] : [...this.#entities.values()];
    const found = sources.flatMap((kept) => (kept && this.#visible(kept) ? this.#edgesOf(kept) : []));
    const target = nameOf(key);
    const wanted = found.filter(
      (edge) => (type === undefined || edge.type === type) && (direction === "out" || nameOf(edge.to) === target),
    );
    return wanted
      .map((edge) => [`${nameOf(edge.from)}\u0000${edgeName(edge)}`, edge] as const)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  }

  append(records: readonly StoredRecord[]): void {
    const nowMs = this.#clock.nowMs();
    for (const record of records) {
      const removal = this.#removals.get(nameOf(record));
      if (removal !== undefined && removal.untilMs > nowMs && ageOf(record) <= removal.rewrittenUs) continue;
      const ofClass = this.#records.get(record.cid) ?? new Map<string, StoredRecord>();
      const given = { ...record, terms: [...indexedTerms(record.terms)] };
      const there = this.record(record);
      this.#records.set(record.cid, ofClass.set(record.id, there === undefined ? given : standingOf(there, given)));
    }
  }

  record({ cid, id }: EntityKey): StoredRecord | undefined {
    const record = this.#records.get(cid)?.get(id);
    return record && !over(record.expiresAtMs ?? 0, this.#clock.nowMs()) ? record : undefined;
  }

  removeRecord(removed: RemovedRecord): void {
    const ofClass = this.#records.get(removed.cid);
    const there = ofClass?.get(removed.id);
    const rewrittenUs = ageOf(removed);
    if (there !== undefined && ageOf(there) > rewrittenUs) return;
    ofClass?.delete(removed.id);
    this.#removals.set(nameOf(removed), { untilMs: this.#clock.nowMs() + OBJECT_TOMBSTONE_KEEP_MS, rewrittenUs });
  }

  /** Newest first. */
  timeline({ cid, fromMs, toMs, terms = [] }: TimelineRequest): readonly StoredRecord[] {
    const wanted = indexedTerms(terms);
    const ids = [...(this.#records.get(cid)?.keys() ?? [])].sort().reverse();
    return ids.flatMap((id) => {
      const record = this.record({ cid, id });
      const timeMs = ulidTimeMs(id) ?? 0;
      return record && timeMs >= fromMs && timeMs < toMs && wanted.every((term) => record.terms.includes(term))
        ? [record]
        : [];
    });
  }

  #entity(key: EntityKey): Kept {
    const name = nameOf(key);
    const kept = this.#entities.get(name) ?? { key, state: new EntityState(), edges: new Map(), versions: new Map() };
    this.#entities.set(name, kept);
    return kept;
  }

  #visible({ key, state }: Kept): Entity | undefined {
    state.settle(this.#clock.nowMs());
    if (state.birthUs === 0) return undefined;
    const numbers = Array.from({ length: NUMBER_SLOTS }, (_, slot) => state.numbers.get(slot)?.value);
    const { birthUs, deathUs } = state;
    const endsAtMs = state.endNamedUs === 0 ? undefined : state.endsAtMs;
    return { key, birthUs, lastUs: state.lastUs(), diedUs: deathUs, endsAtMs, cells: cellsOf(state), numbers };
  }

  #edgesOf({ key, state, edges }: Kept): readonly Edge[] {
    const nowMs = this.#clock.nowMs();
    return [...edges.values()].flatMap(({ end, timeUs, present, expiresAtMs }) =>
      present && timeUs > state.deathUs && !over(expiresAtMs, nowMs) ? [{ ...end, from: key, timeUs }] : [],
    );
  }
}

function cellsOf(state: EntityState): Cells {
  const cells = new Map<string, StoredCell>();
  for (const [name, { timeUs, value }] of state.cells) if (value !== undefined) cells.set(name, { value, timeUs });
  return new SingleCells(cells);
}

function nameOf({ cid, id }: EntityKey): string {
  return `${cid}/${id}`;
}

function edgeName({ type, to }: EdgeEnd): string {
  return `${type}\u0000${nameOf(to)}`;
}

function mergeEdge(edges: Map<string, EdgeMark>, incoming: EdgeMark): void {
  const name = edgeName(incoming.end);
  const current = edges.get(name);
  if (current === undefined || edgeWins(incoming, current)) edges.set(name, incoming);
}

/** As for cells: the later one wins; at equal times the removal, then the greater bytes. */
function edgeWins(incoming: EdgeMark, current: EdgeMark): boolean {
  if (incoming.timeUs !== current.timeUs) return incoming.timeUs > current.timeUs;
  if (!current.present) return false;
  return (
    !incoming.present || Buffer.compare(incoming.end.value ?? Buffer.alloc(0), current.end.value ?? Buffer.alloc(0)) > 0
  );
}

function over(expiresAtMs: number, nowMs: number): boolean {
  return expiresAtMs > 0 && expiresAtMs <= nowMs;
}

/** If two rows have one id, the greater bytes win. Equal bytes get the terms of both and the later end. */
function standingOf(there: StoredRecord, given: StoredRecord): StoredRecord {
  const order = ageOf(there) - ageOf(given) || Buffer.compare(there.value, given.value);
  if (order !== 0) return order > 0 ? there : given;
  const [one, other] = [there.expiresAtMs ?? 0, given.expiresAtMs ?? 0];
  const { cid, id, value, rewrittenUs } = given;
  const ends = one > 0 && other > 0 ? { expiresAtMs: Math.max(one, other) } : {};
  const terms = [...new Set([...there.terms, ...given.terms])];
  return { cid, id, value, terms, ...ends, ...(rewrittenUs !== undefined && { rewrittenUs }) };
}

function ageOf({ rewrittenUs = 0 }: Pick<StoredRecord, "rewrittenUs">): number {
  return rewrittenUs;
}

function endVersions(versions: Map<number, Version>, beforeUs: number, atMs: number): void {
  const earlier = [...versions.values()].filter(({ timeUs }) => timeUs < beforeUs).sort((a, b) => b.timeUs - a.timeUs);
  for (const version of earlier.slice(0, VERSIONS_ENDED_MAX))
    if (!version.stays && (version.expiresAtMs === 0 || version.expiresAtMs > atMs))
      versions.set(version.timeUs, { ...version, expiresAtMs: atMs });
}
