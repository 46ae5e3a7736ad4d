import { AppError } from "../../../../common/errors.ts";
import type { Row } from "../../../../common/value.ts";
import type {
  ClassChange,
  ClassView,
  Edit,
  ObjectRef,
  ObjectRow,
  ReadRequest,
} from "../../../../controller/areas/objects/index.ts";
import { isBelow, MemoryClasses } from "./classes.ts";
import { MemoryEdges } from "./edges.ts";

/** Classes, rows and edges of one tenant. */
export class MemoryTenant {
  readonly classes = new MemoryClasses();
  readonly edges = new MemoryEdges();
  /** By class path, then by full id. */
  readonly #rows = new Map<string, Map<string, ObjectRow>>();

  addClass(spec: Parameters<MemoryClasses["add"]>[0]): ClassView {
    this.classes.add(spec);
    this.#renewViews();
    return this.classes.view(spec.path);
  }

  alterClass(path: string, changes: readonly ClassChange[]): ClassView {
    for (const change of changes) this.classes.alter(path, change);
    this.#renewViews();
    return this.classes.view(path);
  }

  /** True if the class has rows or classes below it. */
  isUsed(path: string): boolean {
    return this.table(path).size > 0 || [...this.classes.views.keys()].some((other) => other.startsWith(`${path}/`));
  }

  /** The rows of a class, by full id. */
  table(path: string): Map<string, ObjectRow> {
    const table = this.#rows.get(path) ?? new Map<string, ObjectRow>();
    this.#rows.set(path, table);
    return table;
  }

  /** The rows of a class, with those of the classes below it for a subtree. */
  rows(request: Pick<ReadRequest, "class" | "subtree">): ObjectRow[] {
    const paths = request.subtree
      ? [...this.classes.views.keys()].filter((path) => isBelow(path, request.class))
      : [request.class];
    return paths.flatMap((path) => [...this.table(path).values()]);
  }

  find(ref: ObjectRef): ObjectRow | undefined {
    const paths = ref.class === undefined ? [...this.classes.views.keys()] : [ref.class];
    return paths.map((path) => this.table(path).get(ref.id)).find((row) => row !== undefined);
  }

  /** Writes values over those of the row that there is. Returns its id. */
  put(view: ClassView, row: { readonly id: string; readonly values: Row; readonly timeMs: number }): string {
    const table = this.table(view.path);
    const old = table.get(row.id);
    table.set(row.id, {
      id: row.id,
      class: view,
      values: { ...old?.values, ...row.values },
      vtimeMs: row.timeMs,
      ctimeMs: old?.ctimeMs ?? row.timeMs,
    });
    return row.id;
  }

  /** Writes the edges of one type from an object. */
  relate(from: Required<ObjectRef>, edit: Edit): void {
    const classOf = (id: string): string => {
      const views = [...this.classes.views.values()].filter((view) => id.startsWith(`${view.label}:`));
      const view = views.find(({ path }) => this.table(path).has(id)) ?? views[0];
      if (view) return view.path;
      throw new AppError("invalid", `[NotExist] Not Found Class For ID ${id}`);
    };
    this.edges.write(from, edit, classOf);
  }

  /** Gives each row the present view of its class. */
  #renewViews(): void {
    for (const [path, rows] of this.#rows) {
      const view = this.classes.views.get(path);
      if (view) for (const row of rows.values()) rows.set(row.id, { ...row, class: view });
    }
  }
}
