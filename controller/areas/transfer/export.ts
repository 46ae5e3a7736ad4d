import { EXPORT_PIECE_CHARACTERS } from "../../../common/limits.ts";
import type { ClassView } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { orderedObjects, type ExportedObject, type RowsDependencies } from "./rows.ts";
import { classText, edgeTypeText, objectText } from "./script.ts";
import { selectClasses } from "./selection.ts";
import type { ExportedClass, ExportRequest } from "./types.ts";

/** Writes what a principal sees of classes and objects down, as it reads it. The same content gives the same bytes. */
export class ExportService {
  readonly #dependencies: RowsDependencies;

  constructor(dependencies: RowsDependencies) {
    this.#dependencies = dependencies;
  }

  /** An MQL script: edge types, classes with those they inherit from first, objects by class and id with what they are related to. */
  async script(principal: Principal, request: ExportRequest): Promise<AsyncIterable<string>> {
    const catalog = await this.#dependencies.objects.catalog(principal);
    const classes = selectClasses(request, principal, catalog);
    const edgeTypes = request.relations ? [...catalog.edgeTypes()].sort((a, b) => (a.name < b.name ? -1 : 1)) : [];
    return inPieces(this.#statements(classes, edgeTypes.map(edgeTypeText), { principal, request }));
  }

  async *#statements(classes: readonly ExportedClass[], first: readonly string[], asked: Asked): AsyncGenerator<string> {
    yield* first;
    const views = new Map<string, ClassView>();
    for (const exported of classes) {
      yield classText(exported, views.get(exported.view.parent ?? ""));
      views.set(exported.view.path, exported.view);
    }
    const ignored = new Set(asked.request.ignoredFields);
    for (const exported of classes) {
      for await (const objects of this.#objects(exported, asked)) {
        for (const object of objects) yield objectText(exported, object, (name) => ignored.has(name));
      }
    }
  }

  async *#objects({ view, hasRows }: ExportedClass, { principal, request }: Asked): AsyncGenerator<readonly ExportedObject[]> {
    const limit = request.limit === undefined || request.limit < 0 ? undefined : request.limit;
    if (hasRows) yield* orderedObjects(this.#dependencies, { principal, view, limit, signal: request.signal });
  }
}

interface Asked {
  readonly principal: Principal;
  readonly request: ExportRequest;
}

async function* inPieces(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let piece = "";
  for await (const text of texts) {
    piece += text;
    if (piece.length < EXPORT_PIECE_CHARACTERS) continue;
    yield piece;
    piece = "";
  }
  if (piece !== "") yield piece;
}
