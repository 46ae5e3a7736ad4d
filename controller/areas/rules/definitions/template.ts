import { type AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { type Insert, parseScript, type ValueNode } from "../../../../common/mql/index.ts";
import { numberOf } from "../../../../common/numbers.ts";
import type { Value } from "../../../../common/value.ts";
import { names, optionFault, type RuleOption, type RuleText, single } from "./options.ts";

/** `--mqltmpl`: a prepared INSERT. `--mqltmpl_fields` names the fields for its `?` in their order. */
export interface InsertTemplate {
  /** Path of the class. */
  readonly class: string;
  readonly line: number;
  readonly values: readonly (readonly [column: string, value: ValueNode])[];
  /** Names of the fields, one for each `?`. */
  readonly fields: readonly string[];
}

/**
 * `undefined` if the rule has no such option. `AppError("syntax")` for a text that is not MQL. `AppError("invalid")`
 * unless it is an INSERT of one row with as many `?` as fields.
 */
export function templateOf(rule: RuleText): InsertTemplate | undefined {
  const text = single(rule, "mqltmpl");
  const fields = names(single(rule, "mqltmpl_fields"));
  const option = rule.options.find(({ name }) => name === "mqltmpl" || name === "mqltmpl_fields");
  if (option === undefined) return undefined;
  if (text === undefined) throw fault(option, "--mqltmpl_fields stands without --mqltmpl");
  const { insert, placeholders } = parsed(text, option);
  const [row] = insert.rows;
  if (insert.rows.length !== 1 || row === undefined || insert.columns.length === 0 || insert.at !== undefined)
    throw fault(option, "--mqltmpl is one INSERT of one row that names its columns");
  if (placeholders !== fields.length)
    throw fault(option, `--mqltmpl has ${placeholders} ?, and --mqltmpl_fields names ${fields.length}`);
  const values = row.map((value, at) => [insert.columns[at] ?? "", value] as const);
  return { class: insert.class.path, line: option.line, values, fields };
}

/** Value of a node in the INSERT. `fieldAt` returns the value for a `?` by its index. */
export function templateValue(node: ValueNode, fieldAt: (index: number) => Value | undefined): Value | undefined {
  switch (node.kind) {
    case "text":
    case "constant":
      return node.value;
    case "number":
      return numberOf(node.text);
    case "placeholder":
      return fieldAt(node.index);
    case "list":
      return node.items.map((item) => templateValue(item, fieldAt)).filter((value) => value !== undefined);
    case "map":
      return Object.fromEntries(
        node.entries.flatMap(({ key, value }) => {
          const made = templateValue(value, fieldAt);
          return made === undefined ? [] : [[key, made]];
        }),
      );
  }
}

function parsed(text: string, option: RuleOption): { readonly insert: Insert; readonly placeholders: number } {
  try {
    const { statements, placeholders } = parseScript(text);
    const [insert] = statements;
    if (statements.length === 1 && insert?.kind === "insert" && !insert.past) return { insert, placeholders };
  } catch (error) {
    if (!isAppError(error)) throw error;
    throw optionFault(option, `--mqltmpl: ${errorText(error)}`);
  }
  throw fault(option, "--mqltmpl is one INSERT of one row that names its columns");
}

function fault(option: RuleOption, complaint: string): AppError {
  return optionFault(option, `${complaint}.`, { code: "invalid" });
}
