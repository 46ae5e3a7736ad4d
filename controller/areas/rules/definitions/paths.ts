import type { Value } from "../../../../common/value.ts";
import { counted } from "../../../../common/text/counted.ts";
import type { RuleText } from "./options.ts";
import type { NestedPath, ParsedRecord, Rule } from "../types.ts";

/** Error of a record that fills no column. */
export const NO_FIELD = "It holds no field of the rule's class.";

/** Columns with a nested member as source: `--var_<column>=field a.b`. */
export function nestedPaths(rule: RuleText): readonly NestedPath[] {
  return rule.options.flatMap(({ name, value }) => {
    const path = /^(?:field\s+)?(?:OBJECT\.)?([\w-]+(?:\.[\w-]+)+)$/i.exec(value)?.[1];
    return name.startsWith("var_") && path !== undefined ? [{ column: name.slice("var_".length), path }] : [];
  });
}

/** The field with exactly this name, or else the nested member at the path. Names of members may contain dots. */
export function memberAt(fields: Readonly<Record<string, Value>>, path: string): Value | undefined {
  if (Object.hasOwn(fields, path)) return fields[path];
  for (let dot = path.indexOf("."); dot > 0; dot = path.indexOf(".", dot + 1)) {
    const name = path.slice(0, dot);
    const inner = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (typeof inner !== "object" || inner === null || Array.isArray(inner)) continue;
    const found = memberAt(inner as Readonly<Record<string, Value>>, path.slice(dot + 1));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Finds nested paths of a rule that have no value in any of the records that it saw. */
export class PathWatch {
  readonly #open: Set<NestedPath>;
  #records = 0;

  constructor({ paths = [] }: Pick<Rule, "paths">) {
    this.#open = new Set(paths);
  }

  see(parsed: readonly ParsedRecord[]): void {
    if (this.#open.size === 0) return;
    for (const record of parsed) {
      if (!record.ok && record.error !== NO_FIELD) continue;
      this.#records += 1;
      if (!record.ok) continue;
      for (const one of this.#open) if (record.values[one.column] !== undefined) this.#open.delete(one);
    }
  }

  warnings(): readonly string[] {
    if (this.#records === 0) return [];
    return Array.from(
      this.#open,
      ({ column, path }) => `--var_${column}: none of ${counted(this.#records, "record")} has a value at ${path}.`,
    );
  }
}
