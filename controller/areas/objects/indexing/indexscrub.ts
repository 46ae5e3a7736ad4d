import { isAppError } from "../../../../common/errors.ts";
import type { Entity, EntityChange, EntityKey, ObjectStore, PageRequest } from "../../../store/objects.ts";
import type { Posting, ScrubStore, TermsOf } from "../../../store/scrub.ts";
import { indexedTerms } from "../../../store/terms.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import { indexEntries } from "../writing/entities/indexentries.ts";

export interface IndexScrubRequest extends PageRequest {
  /** `objects`: adds what indexes lack. `indexes`: removes what is superfluous in them. */
  readonly step: "objects" | "indexes";
  /** Superfluous entries with this time or a later one are left. */
  readonly beforeUs: number;
}

export interface IndexScrubPage {
  /** Number of objects or index entries that were looked at. */
  readonly looked: number;
  /** Number of comparisons, as a measure of the load on the store. */
  readonly comparisons: number;
  /** Number of index entries that were added. */
  readonly missing: number;
  /** Number of index entries that were removed. */
  readonly superfluous: number;
  /** Some of the differences, for people to read. */
  readonly examples: readonly string[];
  readonly cursor?: string;
}

export interface IndexScrubStores {
  readonly objects: ObjectStore;
  readonly scrub: ScrubStore;
  /** The current definitions. */
  readonly snapshot: () => Promise<Snapshot>;
}

/** Compares the indexes of classes with their objects. Objects of unknown classes keep their index entries. */
export class IndexScrub {
  readonly #of: IndexScrubStores;

  constructor(of: IndexScrubStores) {
    this.#of = of;
  }

  async page({ step, beforeUs, ...page }: IndexScrubRequest): Promise<IndexScrubPage> {
    return step === "objects" ? this.#objects(page) : this.#indexes(page, beforeUs);
  }

  async #objects(page: PageRequest): Promise<IndexScrubPage> {
    const { items, cursor } = await this.#of.objects.scan(page);
    const first = await this.#lacking(items);
    // An object that was changed in the meantime had other terms at the first check, so it is read and checked again.
    const again = await this.#lacking(await this.#there(first.lacking.map(({ entity }) => entity.key)));
    await this.#add(again.lacking);
    return {
      looked: items.length,
      comparisons: items.length + first.comparisons + again.comparisons,
      missing: again.lacking.reduce((sum, { terms }) => sum + terms.length, 0),
      superfluous: 0,
      examples: again.lacking.flatMap(({ entity, terms }) =>
        terms.map((term) => `missing: ${nameOf(entity.key)} under ${term}`),
      ),
      ...(cursor === undefined ? {} : { cursor }),
    };
  }

  async #lacking(entities: readonly Entity[]): Promise<{ lacking: TermsOf[]; comparisons: number }> {
    const snapshot = await this.#of.snapshot();
    const known = entities.flatMap((entity) => {
      const terms = termsOf(snapshot, entity);
      return terms === undefined ? [] : [{ entity, terms: [...terms] }];
    });
    if (known.length === 0) return { lacking: [], comparisons: 0 };
    const missing = await this.#of.scrub.missing(known);
    return {
      lacking: known.flatMap(({ entity }, at) => {
        const terms = missing[at] ?? [];
        return terms.length === 0 ? [] : [{ entity, terms }];
      }),
      comparisons: known.reduce((sum, { terms }) => sum + terms.length, 0),
    };
  }

  async #add(lacking: readonly TermsOf[]): Promise<void> {
    const snapshot = await this.#of.snapshot();
    for (const { entity, terms } of lacking) {
      const isLacking = (term: string): boolean => terms.includes(term);
      const changes = entriesOf(snapshot, entity) ?? [];
      await this.#of.scrub.add(
        changes.map((change) => ({ ...change, addTerms: indexedTerms(change.addTerms ?? []).filter(isLacking) })),
      );
    }
  }

  async #indexes(page: PageRequest, beforeUs: number): Promise<IndexScrubPage> {
    const { items, cursor } = await this.#of.scrub.postings(page);
    const old = items.filter(({ timeUs }) => timeUs < beforeUs);
    const entities = new Map(
      (await this.#there(old.map(({ key }) => key))).map((entity) => [nameOf(entity.key), entity]),
    );
    const superfluous = await this.#superfluous(old, entities);
    await this.#of.scrub.remove(superfluous);
    return {
      looked: items.length,
      comparisons: 2 * items.length,
      missing: 0,
      superfluous: superfluous.length,
      examples: superfluous.map(({ key, term }) => `superfluous: ${nameOf(key)} under ${term}`),
      ...(cursor === undefined ? {} : { cursor }),
    };
  }

  /**
   * Entries that their objects do not have. Reads the definitions now, so that they are at least as new as the entries.
   */
  async #superfluous(rows: readonly Posting[], entities: ReadonlyMap<string, Entity>): Promise<readonly Posting[]> {
    const snapshot = await this.#of.snapshot();
    const known = new Map([...entities].map(([name, entity]) => [name, termsOf(snapshot, entity)]));
    return rows.filter(({ key, term }) => {
      const name = nameOf(key);
      return !entities.has(name) || known.get(name)?.has(term) === false;
    });
  }

  /** The entities that are alive, each once. */
  async #there(keys: readonly EntityKey[]): Promise<readonly Entity[]> {
    const each = new Map(keys.map((key) => [nameOf(key), key]));
    const found = await this.#of.objects.get([...each.values()]);
    return found.filter((entity) => entity !== undefined);
  }
}

/**
 * The terms of the entity as the index stores them. `undefined` for an entity of an unknown class, or with more terms
 * than are kept.
 */
function termsOf(snapshot: Snapshot, entity: Entity): ReadonlySet<string> | undefined {
  const entries = entriesOf(snapshot, entity);
  return entries && new Set(indexedTerms(entries.flatMap(({ addTerms = [] }) => [...addTerms])));
}

function entriesOf(snapshot: Snapshot, entity: Entity): readonly EntityChange[] | undefined {
  const view = snapshot.byCid(entity.key.cid);
  if (view === undefined || view.kind === "record") return undefined;
  try {
    return indexEntries(view, entity);
  } catch (error) {
    if (isAppError(error, "too_large")) return undefined;
    throw error;
  }
}

function nameOf({ cid, id }: EntityKey): string {
  return `${cid}:${id}`;
}
