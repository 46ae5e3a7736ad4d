import type { Static } from "typebox";
import type { AheadOutput } from "../../common/api/cluster.ts";
import type { OdpClient } from "../../common/client/index.ts";
import { AppError } from "../../common/errors.ts";
import { AHEAD_LISTED_MAX } from "../../common/limits.ts";
import { column, type Row, type View } from "./formats/columns.ts";

type AheadPage = Static<typeof AheadOutput>;

export interface AheadObjects {
  readonly objects: AheadPage["objects"];
  /** There may be others that are not listed. */
  readonly more: boolean;
}

/** The first objects that are ahead of the controller's clock, up to `limit`. */
export async function aheadOf(client: Pick<OdpClient, "pages">, limit: number): Promise<AheadObjects> {
  if (!Number.isInteger(limit) || limit < 1 || limit > AHEAD_LISTED_MAX)
    throw new AppError("invalid", `--limit takes a whole number from 1 up to ${AHEAD_LISTED_MAX}.`);
  const objects: AheadPage["objects"] = [];
  let hasNext = false;
  for await (const { message } of client.pages("getClusterAhead")) {
    objects.push(...message.objects);
    hasNext = message.cursor !== undefined;
    if (objects.length >= limit) break;
  }
  return { objects: objects.slice(0, limit), more: hasNext || objects.length > limit };
}

export const AHEAD_VIEW: View = {
  name: "id",
  columns: [
    column("id", { isWhole: true }),
    column("class"),
    column("last write", { member: "vtimeMs", isTime: true }),
  ],
};

/** The furthest ahead first. */
export function aheadRows({ objects }: AheadObjects): readonly Row[] | string {
  if (objects.length === 0) return "No object is ahead of the controller's clock.";
  const sorted = [...objects].sort((a, b) => b.vtimeMs - a.vtimeMs || a.id.localeCompare(b.id));
  return sorted;
}
