import type { ReadRequest } from "../../objects/index.ts";
import type { ChangedObjects } from "./repeatable.ts";

/** Objects that statements of a batch are going to change. */
export class Touched {
  readonly #ids = new Map<string, Set<string>>();

  add(objects: ChangedObjects): void {
    const known = this.#ids.get(objects.class) ?? new Set();
    for (const id of objects.ids) known.add(id);
    this.#ids.set(objects.class, known);
  }

  /** True if changes of these objects may change the answer of the reads. */
  concerns(reads: readonly ReadRequest[]): boolean {
    return reads.some((read) =>
      [...this.#ids].some(
        ([path, ids]) => isRead(path, read) && (read.ids === undefined || read.ids.some((id) => ids.has(id))),
      ),
    );
  }
}

function isRead(path: string, { class: root, subtree }: ReadRequest): boolean {
  return path === root || (subtree && (root === "/" || path.startsWith(`${root}/`)));
}
