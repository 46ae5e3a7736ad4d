import { HTTP_WARNING_NAME_MAX_CHARACTERS } from "../limits.ts";
import { beginningOf } from "./cut.ts";
import { suggestion } from "./nearest.ts";

/** A warning for a name that a client sent, or for a member of that name `within` an object, that nothing reads. */
export function ignoredName(name: string, known: Iterable<string>, within = ""): string {
  return `${within}${notKnown(name)} and was ignored${meantOf(name, known)}`;
}

/** Says that a name is not known. */
export function notKnown(name: string): string {
  return `${isLong(name) ? `${beginningOf(name, HTTP_WARNING_NAME_MAX_CHARACTERS)}…` : name} is not known here`;
}

/** As `meant`. A long name is no slip of the pen, and comparing it takes long. */
export function meantOf(name: string, known: Iterable<string>): string {
  return isLong(name) ? "." : suggestion(name, known);
}

function isLong(name: string): boolean {
  return name.length > HTTP_WARNING_NAME_MAX_CHARACTERS;
}
