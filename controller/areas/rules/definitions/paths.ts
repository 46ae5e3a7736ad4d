import type { Value } from "../../../../common/value.ts";
import { counted } from "../../../../common/text/counted.ts";
import type { RuleText } from "./options.ts";
import type { NestedPath, ParsedRecord, Rule } from "../types.ts";

/** Why a record is none that fills no column. */
export const NO_FIELD = "It holds no field of the rule's class.";

/** The nested members that `--var_<column>=field a.b` names. */
export function nestedPaths(rule: RuleText): readonly NestedPath[] {
  return rule.options.flatMap(({ name, value }) => {
    const path = /^(?:field\s+)?(?:OBJECT\.)?([\w-]+(?:\.[\w-]+)+)$/i.exec(value)?.[1];
    return name.startsWith("var_") && path !== undefined ? [{ column: name.slice("var_".length), path }] : [];
  });
}

/** The member of that very name, or else the one that the path leads to through objects. */
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

/** Notices paths of a rule that lead to nothing in all of some records. */
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
