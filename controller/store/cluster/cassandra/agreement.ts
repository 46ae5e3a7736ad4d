import { AppError } from "../../../../common/errors.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Deadline } from "../deadline.ts";

/** About two seconds: on a ring of three a definition takes some hundred milliseconds to reach all nodes. */
const LOOKS_BEFORE_TOLD = 7;

/** A running node and its schema version, as the node itself reports it. */
export interface SchemaNode {
  readonly address: string;
  readonly version: () => Promise<string>;
}

/** The schema versions of the running nodes if they differ; `undefined` if they agree. */
export async function schemaDifference(up: readonly SchemaNode[]): Promise<string | undefined> {
  if (up.length < 2) return undefined;
  const versions = await Promise.all(up.map(async ({ address, version }) => [await told(version), address] as const));
  if (new Set(versions.map(([version]) => version)).size === 1) return undefined;
  return versions.map(([version, address]) => `${address} has ${version}`).join(", ");
}

/**
 * Waits until all running nodes have the same schema. If that takes long, it logs once which nodes differ. At the
 * deadline it throws `AppError("unknown_outcome")` that names the nodes. The driver itself waits only after its own
 * definition changed something. If another controller has just created the tables, or if an answer was lost, the next
 * statement could reach a node that does not have them yet.
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
