import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { PromiseId } from "../../promises.ts";

/** Facts about the run of a test: counts, seeds, engines. Shown on the page of promises unchanged. */
export type Evidence = Readonly<Record<string, string | number | readonly (string | number)[]>>;

export const EVIDENCE_FOLDER = join(import.meta.dirname, "../../../.evidence");

/**
 * Records that a promise was kept in this run; `npm run promises` creates the page. Call it at the end of a test, when
 * nothing can fail any more.
 */
export function prove(promise: PromiseId, evidence: Evidence): void {
  mkdirSync(EVIDENCE_FOLDER, { recursive: true });
  appendFileSync(join(EVIDENCE_FOLDER, `${promise}.jsonl`), `${JSON.stringify(evidence)}\n`);
}
