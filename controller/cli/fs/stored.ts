import { isRow } from "../formats/columns.ts";

export interface StoredFile {
  readonly path: string;
  readonly digest: string;
}

export interface StoredState {
  readonly format: 1;
  readonly target: string;
  readonly files: readonly (StoredFile & { readonly revision: string; readonly local: string })[];
  readonly folders: readonly string[];
  readonly sent?: readonly StoredFile[];
}

/** True for the content of a file with the state of a sync. */
export function isStored(value: unknown): value is StoredState {
  if (!isRow(value) || value["format"] !== 1 || typeof value["target"] !== "string") return false;
  const { files, folders, sent } = value;
  return (
    isListOf(files, (one) => hasTexts(one, ["path", "digest", "revision", "local"])) &&
    isListOf(folders, (one) => typeof one === "string") &&
    (sent === undefined || isListOf(sent, (one) => hasTexts(one, ["path", "digest"])))
  );
}

function isListOf(value: unknown, isMember: (one: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isMember);
}

function hasTexts(value: unknown, names: readonly string[]): boolean {
  return isRow(value) && names.every((name) => typeof value[name] === "string");
}
