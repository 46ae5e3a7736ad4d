import { PARSE_THREAD_RULES_MAX } from "../../../common/limits.ts";
import { compileRule, type CompiledRule } from "./definitions/compile.ts";
import { type GrokMatch, type GrokTrial, grokTrial } from "./grok/trial.ts";
import type { Supplements } from "./definitions/supplements.ts";
import type { ParsedRecord, RawRecord, Rule } from "./types.ts";

export interface PlainRule extends Pick<Rule, "digest" | "text" | "class" | "columns" | "timeColumns"> {
  /** Patterns and extension table that the parser uses. */
  readonly supplements: Pick<Supplements, "patterns" | "extension">;
}

interface ParseInput {
  readonly rule: PlainRule;
  readonly records: readonly RawRecord[];
}

interface ParseOutput {
  readonly parsed: readonly ParsedRecord[];
  /** Names of fields that no column takes, once for each record with that field. */
  readonly unused: readonly string[];
}

/** Tasks of this area for worker threads. Nothing here may import stores, HTTP or services. */
export const RULE_TASKS = { parseRecords, matchGrok } as const;
export type RuleTasks = typeof RULE_TASKS;

/**
 * Compiled rules of this thread by digest, class and columns. At most `PARSE_THREAD_RULES_MAX`; the oldest is removed
 * first.
 */
const compiled = new Map<string, CompiledRule>();

function parseRecords({ rule, records }: ParseInput): ParseOutput {
  const unused: string[] = [];
  const parsed = compiledRule(rule).parse(records, (field) => unused.push(field));
  return { parsed, unused };
}

function matchGrok({ trial, lines }: { readonly trial: GrokTrial; readonly lines: readonly string[] }): GrokMatch[] {
  return lines.map(grokTrial(trial));
}

function compiledRule({ digest, text, class: path, columns, timeColumns, supplements }: PlainRule): CompiledRule {
  const name = JSON.stringify([digest, path, columns, timeColumns]);
  const known = compiled.get(name);
  if (known) return known;
  const typed = columns.map((name) => ({ name, ...(timeColumns.includes(name) && { type: "timestamp" }) }));
  const target = { path, columns: typed, supplements };
  const made = compileRule(text, target);
  const oldest = compiled.keys().next();
  if (compiled.size >= PARSE_THREAD_RULES_MAX && !oldest.done) compiled.delete(oldest.value);
  compiled.set(name, made);
  return made;
}
