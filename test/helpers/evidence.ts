import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { PromiseId } from "../promises.ts";

/** What a run of a test amounted to: counts, seeds, engines; shown on the page of promises as it is. */
export type Evidence = Readonly<Record<string, string | number | readonly (string | number)[]>>;

export const EVIDENCE_FOLDER = join(import.meta.dirname, "../../.evidence");

/**
 * Puts on record that a promise was kept in this run; `npm run promises` makes the page of it. To be called when
 * nothing can fail any more.
 */
export function prove(promise: PromiseId, evidence: Evidence): void {
  mkdirSync(EVIDENCE_FOLDER, { recursive: true });
  appendFileSync(join(EVIDENCE_FOLDER, `${promise}.jsonl`), `${JSON.stringify(evidence)}\n`);
}
