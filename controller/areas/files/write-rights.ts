import { stat } from "node:fs/promises";
import { AppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import { TAGS_COLUMN } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { FILE_CLASS } from "./classes.ts";
import type { Content } from "./contents.ts";
import type { FileEntry } from "./entries.ts";
import type { Place } from "./names.ts";
import type { FileNotes } from "./notes.ts";
import { KeptContent } from "./transfer/kept-content.ts";
import type { FileVisibility } from "./visible.ts";

/** Checks writes against the rules of groups on the class of files. */
export class WriteRights {
  readonly #clock: Clock;
  readonly #visibilityOf: (principal: Principal) => Promise<FileVisibility>;

  constructor(clock: Clock, visibilityOf: (principal: Principal) => Promise<FileVisibility>) {
    this.#clock = clock;
    this.#visibilityOf = visibilityOf;
  }

  /** `AppError("denied")` if rules on the class of files forbid the principal every write. */
  async requireSomeWriting(principal: Principal): Promise<void> {
    const { rules } = await this.#visibilityOf(principal);
    if (rules === undefined || rules.some(({ access }) => access === "write")) return;
    throw new AppError("denied", `${principal.user} may not write files, by the rules for ${FILE_CLASS.path}.`);
  }

  /** `AppError("denied")` if rules on the class of files forbid the principal this write. */
  async requireWriting(
    principal: Principal,
    place: Place,
    {
      before,
      row,
      given,
    }: { before: FileEntry | undefined; row: Row; given: FileNotes & { content?: Content | undefined } },
  ): Promise<void> {
    const visibility = await this.#visibilityOf(principal);
    if (visibility.rules === undefined) return;
    const { content, ftype, attr, tags } = given;
    const by = { digest: content, ftype, attr, [TAGS_COLUMN]: tags };
    const columns = Object.entries(by).flatMap(([column, value]) => (value === undefined ? [] : [column]));
    const held = content && (await announced(content));
    const own = held && { ...held, owner: principal.user, modified: this.#clock.nowMs() };
    visibility.requireWriting(place, { before, after: { ...row, ...own }, columns });
  }
}

/** Columns of a content before a file names it. The digest may not be known yet, so it is an empty text. */
async function announced(content: Content): Promise<Row> {
  return { digest: "", size: await sizeOf(content) };
}

async function sizeOf(content: Content): Promise<number> {
  if (content instanceof KeptContent) return content.size;
  return "text" in content ? Buffer.byteLength(content.text) : (await stat(content.file)).size;
}
