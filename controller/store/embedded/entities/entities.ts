import type { Entity, EntityChange, EntityKey, EntityTrace, Page, PageRequest } from "../../objects.ts";
import { OBJECT_PAGE_EXAMINED_MAX, OBJECT_PAGE_MAX_BYTES } from "../../../../common/limits.ts";
import { NO_CELLS } from "../../cells.ts";
import { encodePacked } from "../../format.ts";
import type { Posting } from "../../scrub.ts";
import { Cursors } from "../cursor.ts";
import { Edges } from "./edges.ts";
import { decodeEntity, encodeEntity } from "./form.ts";
import { EntityState, type Indexed } from "./state.ts";
import { EntityView } from "./view.ts";
import type { Environment } from "../environment/environment.ts";
import type { Expiry } from "../environment/expiry.ts";
import { History } from "./history.ts";
import { KeyLists } from "./key-lists.ts";
import { following } from "../bytes/keys.ts";
import { entityKeyBytes, EXPIRY_KINDS, numberKey, parseEntityKey } from "../bytes/object-keys.ts";

const PRESENT = encodePacked(1);

export interface EntitiesOptions {
  readonly env: Environment;
  readonly expiry: Expiry;
  readonly nowMs: () => number;
}

/**
 * Entities with their indexes. An entry of `terms` or `numbers` exists exactly while the entity, as last written, is
 * alive and has it.
 */
export class Entities {
  readonly edges: Edges;
  readonly history: History;
  readonly lists = new KeyLists();
  readonly #env: Environment;
  readonly #expiry: Expiry;
  readonly #nowMs: () => number;

  constructor({ env, expiry, nowMs }: EntitiesOptions) {
    this.#env = env;
    this.#expiry = expiry;
    this.#nowMs = nowMs;
    this.history = new History(env, expiry);
    this.edges = new Edges({ env, expiry, alive: (key) => this.#view(key)?.alive === true });
  }

  /** Call it inside a write transaction. */
  change(change: EntityChange): void {
    const bytes = entityKeyBytes(change.key);
    const nowMs = this.#nowMs();
    const state = this.#update(bytes, (loaded) => loaded.apply(change, nowMs));
    if (change.addEdges !== undefined || change.dropEdges !== undefined) this.edges.apply(change, state.deathUs, nowMs);
    if (change.version !== undefined || change.forgetHistory || change.endVersionsAtMs !== undefined)
      this.history.apply(change, state.forgottenUs);
  }

  /**
   * Call it inside a write transaction. Removes the term from the entity, unless it was written later. No removal is
   * remembered, because the value may be indexed again with its own time.
   */
  forgetTerm({ key, term, timeUs }: Posting): void {
    this.#update(entityKeyBytes(key), ({ terms }) => {
      if ((terms.get(term)?.timeUs ?? 0) <= timeUs) terms.delete(term);
    });
  }

  /** Call it inside a write transaction when a part of the entity expires, or when a removal may be forgotten. */
  visit(bytes: Uint8Array, due: { readonly atMs: number; readonly nowMs: number }): void {
    if (this.#load(bytes)?.dueMs === due.atMs) this.#update(bytes, (state) => state.settle(due.nowMs));
  }

  get(key: EntityKey): Entity | undefined {
    const view = this.#view(key);
    return view?.alive ? view : undefined;
  }

  trace(key: EntityKey): EntityTrace {
    return this.#view(key)?.toTrace() ?? { entity: undefined, lastUs: 0, leftover: NO_CELLS };
  }

  scan(page: PageRequest, place: string): Page<Entity> {
    const cursors = new Cursors([place, "scan"]);
    const after = cursors.read(page);
    const context = { lists: this.lists, nowMs: this.#nowMs() };
    const items: Entity[] = [];
    let [examined, bytes, last] = [0, 0, after];
    for (const { key, value } of this.#env
      .read()
      .objects.getRange({ start: after === undefined ? Uint8Array.of(0) : following(after) })) {
      if (
        last !== after &&
        (items.length >= page.limit || examined >= OBJECT_PAGE_EXAMINED_MAX || bytes >= OBJECT_PAGE_MAX_BYTES)
      ) {
        return { items, cursor: cursors.write(last!) };
      }
      last = key;
      examined += 1;
      bytes += value.length;
      const view = EntityView.of(parseEntityKey(key), value, context);
      if (view.alive) items.push(view);
    }
    return { items };
  }

  #view(key: EntityKey): EntityView | undefined {
    const stored = this.#env.read().objects.get(entityKeyBytes(key));
    return stored === undefined ? undefined : EntityView.of(key, stored, { lists: this.lists, nowMs: this.#nowMs() });
  }

  #load(bytes: Uint8Array): EntityState | undefined {
    const stored = this.#env.tables.objects.get(bytes);
    return stored === undefined ? undefined : decodeEntity(stored);
  }

  #update(bytes: Uint8Array, merge: (state: EntityState) => void): EntityState {
    const there = this.#env.tables.objects.row(bytes);
    const state = there === undefined ? new EntityState() : decodeEntity(there.value);
    const before = state.indexed();
    const deathUs = state.deathUs;
    merge(state);
    this.#reindex(bytes, before, state.indexed());
    this.#schedule(bytes, state);
    if (state.empty) this.#env.tables.objects.remove(bytes);
    else this.#env.tables.objects.put(bytes, encodeEntity(state), there?.isSound !== false);
    if (there !== undefined && state.deathUs > deathUs) this.edges.cover(parseEntityKey(bytes), state.deathUs);
    return state;
  }

  #reindex(bytes: Uint8Array, before: Indexed, after: Indexed): void {
    const { terms, numbers } = this.#env.tables;
    for (const term of before.terms) if (!after.terms.has(term)) void terms.remove(term, bytes);
    for (const term of after.terms) if (!before.terms.has(term)) void terms.put(term, bytes);
    const slots = Math.max(before.numbers.length, after.numbers.length);
    for (let slot = 0; slot < slots; slot++) {
      const [old, now] = [before.numbers[slot], after.numbers[slot]];
      if (old === now) continue;
      if (old !== undefined) void numbers.remove(numberKey(slot, old, bytes));
      if (now !== undefined) void numbers.put(numberKey(slot, now, bytes), PRESENT);
    }
  }

  #schedule(bytes: Uint8Array, state: EntityState): void {
    const dueMs = state.nextDueMs();
    if (dueMs === state.dueMs) return;
    if (state.dueMs > 0) this.#expiry.remove(state.dueMs, EXPIRY_KINDS.entity, bytes);
    if (dueMs > 0) this.#expiry.add(dueMs, EXPIRY_KINDS.entity, bytes);
    state.dueMs = dueMs;
  }
}
