import { AppError } from "../../../../../common/errors.ts";
import { type Field, printField } from "../../../../../common/mql/index.ts";
import { unknownName } from "../../../../../common/text/nearest.ts";
import { nameAmong } from "../../../objects/index.ts";
import type { BoundField, Names } from "../../expressions/fields.ts";
import { type Arguments, withValues } from "../../expressions/literal.ts";

/** Names in the scope of all objects that a principal sees. */
export interface Everything extends Pick<Names, "bind" | "definedName"> {
  readonly tree: { readonly relations: ReadonlySet<string>; readonly names: ReadonlySet<string> };
  has(name: string): boolean;
  isRelation(name: string): boolean;
}

/**
 * A field whose first part is an edge type in its defined form, bound among all objects that the principal sees. A
 * later part that others follow is an edge type if there is one of that name. The last part is an edge type only if no
 * class has a column of that name.
 */
export function followedField(field: Field, everything: Everything, values: Arguments): BoundField {
  const [first = "", ...written] = field.parts;
  const steps = [first];
  let rest: readonly string[] = written;
  for (let type = stepOf(rest, everything); type !== undefined; type = stepOf(rest, everything)) {
    steps.push(type);
    rest = rest.slice(1);
  }
  const end = endOf({ ...field, parts: rest }, everything, values);
  if (rest.length > 0 ? !end : field.window !== undefined) throw unknownEnd(field, rest, everything);
  const parts = [...steps, ...(end ? [end.name, ...end.members] : [])];
  const key = printField(withValues({ ...field, parts }, values));
  const relation = { key, steps, end, parts };
  const label = field.window ? key : parts.join(".");
  return { label, short: label, name: label, table: 0, pseudo: undefined, members: [], relation };
}

function stepOf([name, ...rest]: readonly string[], everything: Everything): string | undefined {
  if (name === undefined) return undefined;
  if (rest.length === 0) {
    const defined = everything.definedName(name);
    return defined !== undefined && everything.isRelation(defined) ? defined : undefined;
  }
  const { relations } = everything.tree;
  if (relations.has(name) || everything.has(name)) return relations.has(name) ? name : undefined;
  const lower = name.toLowerCase();
  return nameAmong(
    [...relations].filter((type) => type.toLowerCase() === lower),
    name,
  );
}

function endOf(field: Field, everything: Everything, values: Arguments): BoundField | undefined {
  const [name] = field.parts;
  return name === undefined || everything.definedName(name) === undefined ? undefined : everything.bind(field, values);
}

function unknownEnd({ parts, window }: Field, [name = ""]: readonly string[], { tree }: Everything): AppError {
  if (window) return new AppError("invalid", `[Valid] A window needs a time series: ${parts.join(".")} is none.`);
  return unknownName(`Field ${parts.join(".")} Not Exist`, { name, among: tree.names });
}
