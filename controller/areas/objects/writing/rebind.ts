import { AppError } from "../../../../common/errors.ts";
import { classNow } from "../definitions/confirm.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { EntityWrite } from "../values/compose.ts";

/**
 * The same write under the current definitions: the same cells and time, with the terms and numbers of the current
 * class.
 */
export function rebindWrite(write: EntityWrite, now: Snapshot): EntityWrite {
  const view = classNow(write.view, now);
  const edits = write.edits.map((edit) => {
    const column = view.columnByNumber(edit.column.number);
    if (column?.name !== edit.column.name) throw changedMeanwhile(view, `column ${edit.column.name}`);
    return { ...edit, column };
  });
  const gone = write.addEdges?.find((edge) => !now.hasEdgeType(edge.type));
  if (gone !== undefined) throw changedMeanwhile(view, `edge type ${gone.type}`);
  return { ...write, view, edits };
}

export function changedMeanwhile(view: LoadedClass, what: string): AppError {
  return new AppError(
    "conflict",
    `[Valid] class ${view.path}: the ${what} was dropped while this was written. The rest may have been kept.`,
  );
}
