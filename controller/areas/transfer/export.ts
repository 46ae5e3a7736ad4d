import { EXPORT_PIECE_CHARACTERS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import { ThreadSlices } from "../../turns/slices.ts";
import type { ClassView, EdgeType } from "../objects/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { PastTexts, requireTimes } from "./past/texts.ts";
import { orderedObjects, removedIds, type ExportedObject, type RowsDependencies } from "./rows.ts";
import { classText, edgeTypeText, objectText } from "./script.ts";
import { classSheet, edgeTypeSheet, workbookBytes } from "./sheets/index.ts";
import { selectClasses } from "./selection.ts";
import type { ExportedClass, ExportRequest } from "./types.ts";

export interface ExportDependencies extends RowsDependencies {
  readonly runtime: Pick<Runtime, "clock">;
}

/** Exports classes and objects, limited to what a principal may see. The same content always gives the same bytes. */
export class ExportService {
  readonly #dependencies: ExportDependencies;

  constructor(dependencies: ExportDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Exports an MQL script: edge types; then classes, each after its superclass; then objects with their relations,
   * sorted by class and id.
   */
  async script(principal: Principal, request: ExportRequest): Promise<AsyncIterable<string>> {
    requirePermission(principal, "objects:read");
    const { clock } = this.#dependencies.runtime;
    const slices = new ThreadSlices({ tenant: principal.tenant, clock, signal: request.signal });
    return inPieces(this.#statements(await this.#content(principal, request)), slices);
  }

  /** Exports the same content as a workbook: one sheet for the edge types, and one for each class. */
  async workbook(principal: Principal, request: ExportRequest): Promise<AsyncIterable<Uint8Array>> {
    requirePermission(principal, "objects:read");
    const content = await this.#content(principal, request);
    const { classes, edgeTypes, parents } = content;
    const sheets = classes.map((exported) =>
      classSheet(exported, {
        parent: parents.get(exported.view.parent ?? ""),
        relations: request.limit === 0 && !request.relations ? [] : this.#relationsOf(exported, content),
        objects: () => this.#objects(exported, content),
      }),
    );
    return workbookBytes(
      request.relations ? [edgeTypeSheet(edgeTypes), ...sheets] : sheets,
    ) as AsyncIterable<Uint8Array>;
  }

  async #content(principal: Principal, request: ExportRequest): Promise<Content> {
    const catalog = await this.#dependencies.objects.catalog(principal);
    const classes = selectClasses(request, principal, catalog);
    if (request.times === true) for (const { view, hasRows } of classes) if (hasRows) requireTimes(principal, view);
    const edgeTypes = [...catalog.edgeTypes()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return { principal, request, classes, edgeTypes, parents: new Map(classes.map(({ view }) => [view.path, view])) };
  }

  async *#statements(content: Content): AsyncGenerator<string> {
    const { classes, edgeTypes, parents, request } = content;
    if (request.relations) yield* edgeTypes.map(edgeTypeText);
    yield* classes.map((exported) => classText(exported, parents.get(exported.view.parent ?? "")));
    for (const exported of classes) {
      const relations = new Set(this.#relationsOf(exported, content));
      if (request.times === true) yield* this.#history(exported, content, relations);
      else
        for await (const objects of this.#objects(exported, content))
          for (const object of objects) yield objectText(exported, object, { relations });
    }
  }

  async *#history(exported: ExportedClass, content: Content, relations: ReadonlySet<string>): AsyncGenerator<string> {
    const { principal, request } = content;
    const { view, hasRows } = exported;
    const past = new PastTexts({
      principal,
      exported,
      relations,
      objects: this.#dependencies.objects,
      signal: request.signal,
    });
    for await (const objects of this.#objects(exported, content)) yield* past.ofObjects(objects);
    const isWhole = request.limit === undefined || request.limit < 0;
    if (!hasRows || !isWhole || !past.hasVersions) return;
    const removed = { principal, view, limit: undefined, signal: request.signal };
    for await (const ids of removedIds(this.#dependencies, removed)) yield* past.ofRemoved(ids);
  }

  /** Names of the edge types that objects of the class can have. */
  #relationsOf({ view }: ExportedClass, { edgeTypes, request }: Content): readonly string[] {
    if (view.kind === "record" || view.system) return [];
    return edgeTypes
      .map(({ name }) => name)
      .filter((name) => view.column(name) === undefined && !request.ignoredFields?.includes(name));
  }

  async *#objects(
    { view, hasRows, recordColumns }: ExportedClass,
    { principal, request }: Content,
  ): AsyncGenerator<readonly ExportedObject[]> {
    const limit = request.limit === undefined || request.limit < 0 ? undefined : request.limit;
    const more = recordColumns.map(({ name }) => name);
    const { signal } = request;
    if (hasRows) yield* orderedObjects(this.#dependencies, { principal, view, more, limit, signal });
  }
}

interface Content {
  readonly principal: Principal;
  readonly request: ExportRequest;
  readonly classes: readonly ExportedClass[];
  /** Edge types, sorted by name. */
  readonly edgeTypes: readonly EdgeType[];
  /** Exported classes by path, to find the superclass of a class. */
  readonly parents: ReadonlyMap<string, ClassView>;
}

/**
 * Joins texts to pieces, and yields the thread between them. Otherwise a reader that takes every piece at once would
 * block the thread.
 */
async function* inPieces(texts: AsyncIterable<string>, slices: ThreadSlices): AsyncGenerator<string> {
  let piece = "";
  for await (const text of texts) {
    piece += text;
    if (piece.length < EXPORT_PIECE_CHARACTERS) continue;
    if (slices.isOverNow()) await slices.pause();
    yield piece;
    piece = "";
  }
  if (piece !== "") yield piece;
}
