import { checkAreas, partsOf, type Area } from "../area.ts";

/** The areas of a controller, for services that are made before them. */
export class AreaList {
  #areas: readonly Area[] | undefined;

  /** Throws if two areas have the same name. */
  list(areas: readonly Area[]): void {
    if (this.#areas !== undefined) throw new Error("The areas are listed twice.");
    this.#areas = checkAreas(areas);
  }

  /** All areas; throws before they are listed. */
  get all(): readonly Area[] {
    if (this.#areas === undefined) throw new Error("The areas are read before they are listed.");
    return this.#areas;
  }

  /** Returns a function that reads the parts of one kind from all areas, in the order of the areas. */
  parts<Part>(part: (area: Area) => readonly Part[] | undefined): () => readonly Part[] {
    return () => partsOf(this.all, part);
  }
}
