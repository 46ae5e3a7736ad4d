import { isRow } from "../formats/columns.ts";

export interface StoredContext {
  readonly url: string;
  /** `<tenant>.<user>` */
  readonly user: string;
  readonly session?: string;
  readonly token?: string;
}

interface StoredContexts {
  readonly format: 1;
  readonly current?: string;
  readonly contexts: Readonly<Record<string, StoredContext>>;
}

/** True for the content of a file of contexts. Every command reads it, so no library checks it: loading one takes longer. */
export function isStored(value: unknown): value is StoredContexts {
  if (!isRow(value) || value["format"] !== 1 || !isTextOrAbsent(value["current"])) return false;
  const { contexts } = value;
  return isRow(contexts) && Object.values(contexts).every(isStoredContext);
}

function isStoredContext(value: unknown): value is StoredContext {
  if (!isRow(value)) return false;
  const { url, user, session, token } = value;
  return typeof url === "string" && typeof user === "string" && isTextOrAbsent(session) && isTextOrAbsent(token);
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}
