import { Readable } from "node:stream";
import { Type } from "typebox";
import {
  AuditCompare,
  AuditExport,
  AuditLine,
  AuditProgressLine,
  AuditReport,
  AuditVerify,
} from "../../../common/api/audit.ts";
import { AppError } from "../../../common/errors.ts";
import { AUDIT_PROGRESS_ENTRIES } from "../../../common/limits.ts";
import { endpoint, type Answer, type Endpoint } from "../../http/interface/endpoint.ts";
import type { Principal } from "../permissions/index.ts";
import type { AuditService, VerifyOptions } from "./service.ts";

const LINES = "application/x-ndjson";

export function auditRoutes(audit: AuditService): readonly Endpoint[] {
  const bare = { content: { [LINES]: { summary: "With stream=true: the progress", schema: AuditProgressLine } } };
  const common = { path: "/audit/verify", permission: "audit:read", output: AuditReport, bare } as const;
  return [
    endpoint({
      ...common,
      method: "GET",
      summary: "Reads the whole audit trail and tells what in it was changed, taken out, put in or cut off.",
      input: AuditVerify,
      handler: ({ principal, input: { stream = false }, signal }) => verified(audit, principal, { stream, signal }),
    }),
    endpoint({
      ...common,
      method: "POST",
      summary: "The same, compared with anchors of other controllers, too",
      body: "json",
      input: AuditCompare,
      handler: ({ principal, input: { stream = false, anchors }, signal }) =>
        verified(audit, principal, { stream, anchors, signal }),
    }),
    endpoint({
      method: "GET",
      path: "/audit/export",
      permission: "audit:read",
      summary: "Entries of the audit trail as lines of JSON, the newest first; the last line is {end: {entries}}",
      input: AuditExport,
      output: Type.String(),
      bare: { content: { [LINES]: { summary: "The entries", schema: AuditLine } }, only: true },
      handler: ({ principal, input: { from, to } }) => {
        const period = { ...(from !== undefined && { fromMs: from }), ...(to !== undefined && { toMs: to }) };
        return answer(exportLines(audit, principal, period));
      },
    }),
  ];
}

interface Verification extends VerifyOptions {
  readonly stream: boolean;
}

async function verified(
  audit: AuditService,
  principal: Principal,
  { stream, ...options }: Verification,
): Promise<Answer<AuditReport>> {
  if (stream) return answer(verifyLines(audit, principal, options));
  const report = await audit.verifyChain(principal, options);
  return { message: { ...report, problems: [...report.problems], notes: [...report.notes] } };
}

async function* verifyLines(audit: AuditService, principal: Principal, options: VerifyOptions): AsyncGenerator<string> {
  const work = audit.verifying(principal, options);
  let told = 0;
  try {
    for (;;) {
      const step = await work.next();
      if (step.done) return yield lineOf({ report: step.value });
      if (step.value - told < AUDIT_PROGRESS_ENTRIES) continue;
      told = step.value;
      yield lineOf({ entries: told });
    }
  } catch (error) {
    yield failureLine(error);
  }
}

async function* exportLines(
  audit: AuditService,
  principal: Principal,
  period: { readonly fromMs?: number; readonly toMs?: number },
): AsyncGenerator<string> {
  let entries = 0;
  try {
    for await (const records of audit.export(principal, period)) {
      entries += records.length;
      yield records.map(lineOf).join("");
    }
    yield lineOf({ end: { entries } });
  } catch (error) {
    yield failureLine(error);
  }
}

/** The head of the answer is already sent, so an error is reported in its last line. */
function failureLine(error: unknown): string {
  if (!(error instanceof AppError)) throw error;
  return lineOf({ error: { code: error.code, message: error.message } });
}

function lineOf(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

function answer(lines: AsyncGenerator<string>): Promise<Answer<never>> {
  return Promise.resolve({ content: Readable.from(lines), contentType: LINES });
}
