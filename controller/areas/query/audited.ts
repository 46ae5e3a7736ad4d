import { isAppError } from "../../../common/errors.ts";
import { AUDIT_NAMES_MAX } from "../../../common/limits.ts";
import type { Statement } from "../../../common/mql/index.ts";
import { entryWritten, type Audit, type AuditEntry, type AuditInCommits, type EntryInCommit } from "../audit/index.ts";
import type { Principal } from "../permissions/index.ts";
import { changesAnything, classesOf, targetOf } from "./statements/targets.ts";

/** The parts of the audit trail that a query needs. */
export type QueryAudit = Pick<Audit, "ready" | "record"> & Partial<AuditInCommits>;

export interface AuditedChange {
  readonly audit: QueryAudit | undefined;
  readonly principal: Principal;
  /** Kinds of statements and classes, but no values. */
  readonly action: string;
  /** The classes. */
  readonly object: string;
  /** True if the change is one write, which can take its entry into its commit. */
  readonly isOneWrite?: boolean;
}

/**
 * Makes a change and writes an audit entry, also if the change fails. `entryWritten` says when the entry is written.
 * If `work` gives the entry to the commit of the change, it is written with it. If the change fails after that, another
 * entry tells of the failure.
 */
export async function audited<T>(
  change: AuditedChange,
  work: (inCommit: EntryInCommit | undefined) => Promise<T>,
): Promise<T> {
  const { audit, principal } = change;
  await audit?.ready(principal.tenant);
  const inCommit = change.isOneWrite ? audit?.inCommit?.(entryOf(change, undefined), principal.ospace) : undefined;
  let result: T;
  try {
    result = await work(inCommit);
  } catch (error) {
    await entryWritten(principal, record(change, error));
    throw error;
  }
  if (inCommit?.isDurable() !== true) await entryWritten(principal, record(change, undefined));
  return result;
}

/** Writes the entry about a change that succeeded, or failed with the error. */
export async function record(change: AuditedChange, error: unknown): Promise<void> {
  await change.audit?.record(entryOf(change, error));
}

function entryOf({ principal, action, object }: AuditedChange, error: unknown): AuditEntry {
  const code = error === undefined ? "ok" : isAppError(error) ? error.code : "internal";
  const outcome = error === undefined ? "ok" : code === "denied" ? "denied" : "failed";
  const { tenant, user, remote = "", traceparent } = principal;
  const permission = "objects:write";
  return { tenant, user, permission, action, object, outcome, code, remote, traceparent };
}

export const NAMES_APART = ", ";

/** Action and object for the audit entry of statements that change something. */
export function toldOf(statements: readonly Statement[]): { readonly action: string; readonly object: string } {
  const changes = statements.filter(changesAnything);
  const named = (names: readonly string[]): string => [...new Set(names)].slice(0, AUDIT_NAMES_MAX).join(NAMES_APART);
  return { action: `MQL ${named(changes.map(targetOf))}`, object: named(changes.flatMap(classesOf)) };
}
