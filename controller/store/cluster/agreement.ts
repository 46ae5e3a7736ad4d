import { AppError } from "../../../common/errors.ts";
import type { Runtime } from "../../runtime.ts";
import type { Deadline } from "./deadline.ts";

/** After about two seconds: on a ring of three every definition takes some hundred milliseconds to reach all. */
const LOOKS_BEFORE_TOLD = 7;

/** A node that is up, and the version of the tables it works by, as it says itself. */
export interface SchemaNode {
  readonly address: string;
  readonly version: () => Promise<string>;
}

/** What each of the nodes that are up works by, where it is not the same; undefined where they agree. */
export async function schemaDifference(up: readonly SchemaNode[]): Promise<string | undefined> {
  if (up.length < 2) return undefined;
  const versions = await Promise.all(up.map(async ({ address, version }) => [await told(version), address] as const));
  if (new Set(versions.map(([version]) => version)).size === 1) return undefined;
  return versions.map(([version, address]) => `${address} has ${version}`).join(", ");
}

/**
 * Waits until all nodes that are up have the same tables, and says once for which it waits where that lasts. The driver waits only for a
 * definition that changed something: where another controller has begun the tables, or an answer was lost, the next
 * statement would meet a node that does not have them. `AppError("unknown_outcome")` with the nodes at the deadline.
 */
export async function schemaAgreed(
  nodes: () => readonly SchemaNode[],
  deadline: Deadline,
  log: Runtime["log"],
): Promise<void> {
  for (let looks = 0; ; looks += 1) {
    const difference = await schemaDifference(nodes());
    if (difference === undefined) return;
    if (looks === LOOKS_BEFORE_TOLD)
      log.warn({ nodes: difference }, "the nodes of Cassandra do not agree on the tables yet");
    if (!(await deadline.pause()))
      throw new AppError("unknown_outcome", `The nodes of Cassandra do not agree on the tables yet: ${difference}.`);
  }
}

function told(version: () => Promise<string>): Promise<string> {
  return version().catch(() => "no answer");
}
