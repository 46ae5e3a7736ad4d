import { mapLimited } from "../../../../common/concurrency.ts";
import { isAppError } from "../../../../common/errors.ts";
import { SCRUB_CHECKS_AT_ONCE } from "../../../../common/limits.ts";
import type { BlobInfo, BlobStore } from "../../blobs.ts";
import type { Entity, EntityChange, ObjectStore, Page, PageRequest } from "../../objects.ts";
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
import { indexedTerms, isClassTerm } from "../../terms.ts";
import { contentOf } from "../blobs/contents.ts";
import { requestText } from "../cursor.ts";
import { EdgeScrub } from "./edge-scrub.ts";
import { EntityTable } from "../entities/entities.ts";
import { PostingTable } from "../postings/postings.ts";
import { RepairHistory } from "./repairs.ts";
import { RowCheck } from "./row-check.ts";
import { ttlSeconds, type Tables } from "../tables.ts";
import { TokenScan } from "./token-scan.ts";
import type { WordTable } from "../postings/words.ts";

export interface CassandraScrubParts {
  readonly tables: Tables;
  readonly objects: Pick<ObjectStore, "change">;
  readonly blobs: Pick<BlobStore, "stat" | "read">;
  readonly words?: WordTable | undefined;
}

/** Scrubs derived data in the tables of one tenant. Each comparison is a separate call with its own deadline. */
export class CassandraScrub implements ScrubStore {
  readonly #tables: Tables;
  readonly #of: CassandraScrubParts;
  readonly #entities: EntityTable;
  readonly #postings: PostingTable;
  readonly #edges: EdgeScrub;
  readonly #allPostings: TokenScan;
  readonly #allContents: TokenScan;
  readonly #rows: RowCheck;

  constructor(of: CassandraScrubParts) {
    const { tables, words } = of;
    this.#of = of;
    this.#tables = tables;
    this.#entities = new EntityTable(tables);
    this.#postings = new PostingTable(tables, words);
    this.#edges = new EdgeScrub(tables);
    this.#rows = new RowCheck(tables);
    this.#allPostings = new TokenScan(tables, {
      table: "postings",
      columns: "term, cid, id, time",
      partitionKey: "term, bucket",
    });
    this.#allContents = new TokenScan(tables, {
      table: "contents",
      columns: "content, kind, size, condemned",
      partitionKey: "content",
    });
  }

  async postings(page: PageRequest): Promise<Page<Posting>> {
    const request = requestText(this.#tables.keyspace, "scrub", "postings");
    const { rows, cursor } = await this.#allPostings.page(request, page);
    const items = rows.map((row) => ({
      term: String(row.term),
      key: { cid: Number(row.cid), id: String(row.id) },
      timeUs: Number(row.time),
    }));
    return cursor === undefined ? { items } : { items, cursor };
  }

  ended(page: PageRequest & { readonly beforeMs: number }): Promise<Page<Entity>> {
    return this.#entities.ended(page);
  }

  endingInParts(page: PageRequest): Promise<Page<EndingInParts>> {
    return this.#entities.endingInParts(page);
  }

  missing(entities: readonly TermsOf[]): Promise<readonly (readonly string[])[]> {
    return mapLimited(entities, SCRUB_CHECKS_AT_ONCE, (of) => this.#missing(of));
  }

  /** Postings are written with the current time, so they win over older removals. */
  async add(changes: readonly EntityChange[]): Promise<void> {
    const { cassandra } = this.#tables;
    await this.#of.objects.change(
      changes.map((change) => ({ ...change, addTerms: (change.addTerms ?? []).filter(isClassTerm) })),
    );
    await mapLimited(changes, SCRUB_CHECKS_AT_ONCE, ({ key, addTerms = [], expiresAtMs }) => {
      const terms = addTerms.filter((term) => !isClassTerm(term));
      const posted = {
        key,
        terms,
        timeUs: cassandra.nextTimeUs(),
        ttl: ttlSeconds(cassandra.runtime.clock, expiresAtMs),
      };
      return this.#postings.add(posted, cassandra.deadline());
    });
  }

  async remove(postings: readonly Posting[]): Promise<void> {
    await mapLimited(postings, SCRUB_CHECKS_AT_ONCE, ({ term, key, timeUs }) =>
      this.#postings.remove({ key, terms: [term], timeUs }, this.#tables.cassandra.deadline()),
    );
  }

  edges(from: "source" | "target", page: PageRequest & { readonly beforeUs: number }): Promise<EdgeCheck> {
    return from === "source" ? this.#edges.fromSources(page) : this.#edges.fromTargets(page);
  }

  async contents(page: PageRequest): Promise<Page<BlobInfo>> {
    const request = requestText(this.#tables.keyspace, "scrub", "contents");
    const { rows, cursor } = await this.#allContents.page(request, page);
    const items = rows.flatMap((row) => contentOf(row) ?? []);
    return cursor === undefined ? { items } : { items, cursor };
  }

  async verify(digest: string, paced: (bytes: number) => Promise<void>): Promise<ContentState> {
    const { blobs } = this.#of;
    if ((await blobs.stat(digest)) === undefined) return "gone";
    const reading = blobs.read(digest)[Symbol.asyncIterator]();
    for (;;) {
      const part = await reading.next().catch(damageOf);
      if (part === "damaged") return (await blobs.stat(digest)) === undefined ? "gone" : "damaged";
      if (part.done) return "sound";
      await paced(part.value.length);
    }
  }

  rows(page: { readonly cursor?: string; readonly isPassing?: boolean }): Promise<RowsRead> {
    return this.#rows.rows(page);
  }

  repairs(): Promise<readonly TableRepair[]> {
    return new RepairHistory(this.#tables.cassandra).tables(this.#tables.keyspace);
  }

  async #missing({ entity: { key }, terms }: TermsOf): Promise<readonly string[]> {
    const deadline = this.#tables.cassandra.deadline();
    const all = indexedTerms(terms);
    const [found] = await this.#entities.find([key], deadline, { keys: [], prefixes: [] });
    if (found === undefined) return [];
    const classes = all.filter((term) => isClassTerm(term) && !found.classes.includes(term));
    const posted = all.filter((term) => !isClassTerm(term));
    return [...classes, ...(await this.#postings.unposted(key, posted, deadline))];
  }
}

/** A chunk is missing or has changed. */
function damageOf(error: unknown): "damaged" {
  if (isAppError(error, "not_found", "internal")) return "damaged";
  throw error;
}
