import { AppError } from "../../../common/errors.ts";
import { FILE_ATTR_MAX_BYTES, FILE_TAGS_MAX } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { TAGS_COLUMN } from "../objects/index.ts";
import { extensionOf, type Place } from "./names.ts";

/** Metadata of a file or folder. An absent member leaves the stored value unchanged. */
export interface FileNotes {
  /** The file's type. Absent: the extension of its name. */
  readonly ftype?: string | undefined;
  /** JSON text of an object; empty: no attributes. */
  readonly attr?: string | undefined;
  readonly tags?: readonly string[] | undefined;
}

/** The type of a file. It is never `dir`, which is the type of folders. */
export function typeOf({ fullname }: Place, given: string | undefined): string {
  const type = given?.trim().replace(/^\./, "").toLowerCase() ?? "";
  return type === "" ? extensionOf(fullname) : extensionOf(`x.${type}`);
}

/** The given notes as columns of the file's row; an absent member gives no column. */
export function noteColumns({ attr, tags }: FileNotes): Row {
  return {
    ...(attr !== undefined && { attr: attrText(attr) }),
    ...(tags !== undefined && { [TAGS_COLUMN]: checkedTags(tags) }),
  };
}

/** The text to store. Clients send an empty text, or its JSON text `""`, for no attributes: both become empty. */
function attrText(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed === '""') return "";
  if (Buffer.byteLength(trimmed) > FILE_ATTR_MAX_BYTES)
    throw new AppError("too_large", `The attributes of a file have at most ${FILE_ATTR_MAX_BYTES} bytes.`);
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch (error) {
    throw new AppError("syntax", "attr is no JSON text.", { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new AppError("invalid", "attr is to be the JSON text of an object.");
  return trimmed;
}

function checkedTags(tags: readonly string[]): string[] {
  const clean = [...new Set(tags.map((tag) => tag.trim()).filter((tag) => tag !== ""))];
  if (clean.length > FILE_TAGS_MAX) throw new AppError("too_large", `A file has at most ${FILE_TAGS_MAX} tags.`);
  return clean;
}
