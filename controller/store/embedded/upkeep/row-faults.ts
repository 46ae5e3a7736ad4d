import { errorText } from "../../../../common/errors.ts";
import { decodeStored } from "../../format.ts";
import type { CheckedRow } from "../environment/checked-table.ts";
import { decodeEntity } from "../entities/form.ts";

/** Message about a faulty row of a table with checksums; `undefined` if it decodes and its checksum is right. */
export function rowFault(table: string, { value, isSound }: Pick<CheckedRow, "value" | "isSound">): string | undefined {
  if (isSound === false) return "its checksum is wrong";
  try {
    if (table === "objects") decodeEntity(value).indexed();
    else decodeStored(value);
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

export const NO_CHECKSUM = "it has no checksum";
