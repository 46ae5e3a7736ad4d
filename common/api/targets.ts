import { Type } from "typebox";
import { TARGET_TEXT_MAX_CHARACTERS } from "../limits.ts";

const DESCRIPTION =
  "name of a host, or an expression: tag:<path> (also tags below it), group:<one of its hostgroups>, a name with *, where:<MQL condition on hosts>";

/** An entry of a list of hosts (`common/targets`). */
export const HostEntry = Type.String({ minLength: 1, maxLength: TARGET_TEXT_MAX_CHARACTERS, description: DESCRIPTION });

/** The same where an empty text is left out. */
export const HostEntryOrEmpty = Type.String({ maxLength: TARGET_TEXT_MAX_CHARACTERS, description: DESCRIPTION });
