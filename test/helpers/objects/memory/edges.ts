import type { Value } from "../../../../common/value.ts";
import type { EdgeRequest, Edit, ObjectEdge, ObjectRef } from "../../../../controller/areas/objects/index.ts";

interface Target {
  readonly id: string;
  readonly class: string;
}

/** Edges in their simplest form. Edges to objects that do not exist yet are stored but not returned. */
export class MemoryEdges {
  #edges: readonly ObjectEdge[] = [];

  /** `resolve` returns the class of an id. */
  write(from: Target, { column, operation, value }: Edit, resolve: (id: string) => string): void {
    const isSame = (edge: ObjectEdge, target?: string) =>
      isFrom(edge, from) && edge.type === column && (target === undefined || edge.target === target);
    const ids = idsOf(value);
    const dropped =
      operation === "set"
        ? (edge: ObjectEdge) => isSame(edge)
        : (edge: ObjectEdge) => ids.some((id) => isSame(edge, id));
    const kept = this.#edges.filter((edge) => !dropped(edge));
    const added =
      operation === "take"
        ? []
        : [...new Set(ids)].map((target) => edge(column, from, { id: target, class: resolve(target) }));
    this.#edges = [...kept, ...added];
  }

  /** Removes the edges from the object. Edges to it stay, and are hidden while it does not exist. */
  forget(object: Target): void {
    this.#edges = this.#edges.filter((edge) => !isFrom(edge, object));
  }

  of(
    refs: readonly ObjectRef[],
    { direction, type }: EdgeRequest,
    isThere: (object: Target) => boolean,
  ): readonly ObjectEdge[] {
    return this.#edges.filter((edge) => {
      const near =
        direction === "out"
          ? { id: edge.source, class: edge.sourceClass }
          : { id: edge.target, class: edge.targetClass };
      const isAsked =
        refs.some((ref) => ref.id === near.id && (ref.class ?? near.class) === near.class) &&
        (type ?? edge.type) === edge.type;
      return (
        isAsked &&
        isThere({ id: edge.source, class: edge.sourceClass }) &&
        isThere({ id: edge.target, class: edge.targetClass })
      );
    });
  }
}

function isFrom(edge: ObjectEdge, { id, class: path }: Target): boolean {
  return edge.source === id && edge.sourceClass === path;
}

function edge(type: string, from: Target, to: Target): ObjectEdge {
  return { type, source: from.id, sourceClass: from.class, target: to.id, targetClass: to.class, timeMs: 0 };
}

function idsOf(value: Value | undefined): readonly string[] {
  const ids = Array.isArray(value) ? (value as readonly Value[]) : [value ?? ""];
  return ids.map(String).filter((id) => id !== "");
}
