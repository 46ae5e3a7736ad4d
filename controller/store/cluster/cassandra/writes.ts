import { AppError, isAppError } from "../../../../common/errors.ts";
import { counted } from "../../../../common/text/counted.ts";

/** Waits for all writes. If some succeed and others fail, the outcome of the whole is unknown. */
export async function allWritten(writes: readonly Promise<void>[]): Promise<void> {
  const [only, ...others] = writes;
  if (others.length === 0) return only;
  const outcomes = await Promise.allSettled(writes);
  const failures = outcomes
    .filter((outcome) => outcome.status === "rejected")
    .map((outcome) => outcome.reason as unknown);
  if (failures.length === 0) return;
  const plain = failures.find((failure) => !isAppError(failure, "unavailable", "unknown_outcome"));
  if (plain !== undefined) throw plain;
  const unknown = failures.find((failure) => isAppError(failure, "unknown_outcome"));
  if (unknown !== undefined || failures.length === writes.length) throw unknown ?? failures[0];
  throw new AppError(
    "unknown_outcome",
    `Cassandra took ${writes.length - failures.length} of ${counted(writes.length, "change")}.`,
    { cause: failures[0] },
  );
}
