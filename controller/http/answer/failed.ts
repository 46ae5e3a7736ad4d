import { counted } from "../../../common/text/counted.ts";
import type { Failures, MessageAnswer } from "../interface/endpoint.ts";

/** Statuses of an answer with failed parts, for a client that asks for precise ones. */
export const SOME_FAILED = 207;
export const ALL_FAILED = 502;

export function statusOfFailures({ count, of }: Failures): number {
  return count === of ? ALL_FAILED : SOME_FAILED;
}

/** The parts of a call: a text for each that failed, and the number of all. */
export interface Parts {
  readonly faults: readonly string[];
  readonly of: number;
}

/** The members of an answer that report at its top which parts of a call failed; none if none failed. */
export function reportFailed({ faults, of }: Parts, part: string): Pick<MessageAnswer<unknown>, "failed" | "warnings"> {
  const count = faults.length;
  if (count === 0) return {};
  return { failed: { count, of }, warnings: [`${count} of ${counted(of, part)} failed.`, ...faults] };
}
