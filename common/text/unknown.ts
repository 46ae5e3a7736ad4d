import { HTTP_WARNING_NAME_MAX_CHARACTERS } from "../limits.ts";
import { beginningOf } from "./cut.ts";
import { suggestion } from "./nearest.ts";

/**
 * Warning that a name sent by a client was ignored. `within` is the path of the object that has the member, such as
 * `fields[2].`.
 */
export function ignoredName(name: string, known: Iterable<string>, within = ""): string {
  return `${within}${notKnown(name)} and was ignored${meantOf(name, known)}`;
}

export function notKnown(name: string): string {
  return `${isLong(name) ? `${beginningOf(name, HTTP_WARNING_NAME_MAX_CHARACTERS)}…` : name} is not known here`;
}

/** As `suggestion`. For a long name only a full stop: it is no typing error, and comparing it would take long. */
export function meantOf(name: string, known: Iterable<string>): string {
  return isLong(name) ? "." : suggestion(name, known);
}

function isLong(name: string): boolean {
  return name.length > HTTP_WARNING_NAME_MAX_CHARACTERS;
}
