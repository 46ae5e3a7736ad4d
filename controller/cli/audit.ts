import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { AuditReport } from "../../common/api/audit.ts";
import { anchorLine, NewestAnchors } from "../../common/audit-anchor.ts";
import type { OdpClient } from "../../common/client/index.ts";
import { AppError } from "../../common/errors.ts";
import { counted } from "../../common/text/counted.ts";

/** Exit codes of `odp audit verify`; 1 is for what could not be asked. */
export const AUDIT_BROKEN = 2;
export const AUDIT_NOT_ANCHORED = 3;

export interface AuditOptions {
  readonly client: Pick<OdpClient, "lines">;
  readonly signal: AbortSignal;
  /** Returns false if nothing can be written any more. */
  readonly write: (text: string) => Promise<boolean>;
}

export interface VerifyOptions extends AuditOptions {
  readonly tenant: string;
  /** Paths of anchor files besides the one of the controller that is asked. */
  readonly anchorFiles: readonly string[];
  readonly json: boolean;
  /** For what is no answer: progress, warnings. */
  readonly note: (text: string) => void;
}

type Line = Partial<{
  readonly entries: number;
  readonly report: AuditReport;
  readonly end: { readonly entries: number };
  readonly error: { readonly code: string; readonly message: string };
}>;

/** Has the whole trail of the tenant checked, and answers the exit code. */
export async function verifyAudit(options: VerifyOptions): Promise<number> {
  const { client, signal, anchorFiles, tenant, json, write, note } = options;
  const lines =
    anchorFiles.length === 0
      ? client.lines("getAuditVerify", {}, { signal })
      : client.lines("postAuditVerify", { body: { anchors: await anchorsOf(anchorFiles, tenant) } }, { signal });
  let report: AuditReport | undefined;
  for await (const told of lines) {
    const line = told as Line;
    if (line.error) throw new AppError("unavailable", line.error.message);
    if (line.entries !== undefined) note(counted(line.entries, "entry", "entries"));
    report = line.report ?? report;
  }
  if (report === undefined) throw new AppError("unavailable", "The answer broke off before the end of the trail.");
  await write(json ? `${JSON.stringify(report, undefined, 2)}\n` : textOf(report));
  if (report.first !== undefined) return AUDIT_BROKEN;
  return report.anchorFault === undefined ? 0 : AUDIT_NOT_ANCHORED;
}

/**
 * Writes every entry as a line of JSON, the newest first, until `write` returns false. Returns the number of entries.
 * Throws when the answer is not whole.
 */
export async function exportAudit(
  { client, signal, write }: AuditOptions,
  query: { readonly from?: number; readonly to?: number },
): Promise<number> {
  let written = 0;
  for await (const told of client.lines("getAuditExport", { query }, { signal })) {
    const line = told as Line;
    if (line.error) throw new AppError("unavailable", line.error.message);
    if (line.end !== undefined) return line.end.entries;
    if (!(await write(`${JSON.stringify(told)}\n`))) return written;
    written++;
  }
  throw new AppError("unavailable", "The answer broke off before the end of the trail.");
}

async function anchorsOf(files: readonly string[], tenant: string): Promise<readonly string[]> {
  const newest = new NewestAnchors(tenant);
  for (const file of files)
    for await (const line of createInterface({ input: createReadStream(file) })) newest.add(line);
  if (newest.unreadable > 0)
    throw new AppError(
      "invalid",
      `${counted(newest.unreadable, "line of", "lines of")} ${files.join(", ")} ${newest.unreadable === 1 ? "is no anchor" : "are no anchors"}.`,
    );
  return newest.all.map((anchor) => anchorLine(anchor).trimEnd());
}

/** A controller of an earlier version has no notes. */
type Report = Omit<AuditReport, "notes"> & Partial<Pick<AuditReport, "notes">>;

function textOf({ entries, runs, anchors, anchorFault, first, problems, notes = [] }: Report): string {
  const lines = [
    first === undefined ? "The trail is sound." : `THE TRAIL IS BROKEN (${first.kind}): ${first.text}`,
    ...problems.slice(1).map((problem) => `  also: ${problem}`),
    `${counted(entries, "entry", "entries")} of ${counted(runs, "run")}, ${anchors} of them compared with what is kept outside the store.`,
    ...notes,
    ...(anchorFault === undefined ? [] : [`NOT ANCHORED: ${anchorFault}`]),
  ];
  return `${lines.join("\n")}\n`;
}
