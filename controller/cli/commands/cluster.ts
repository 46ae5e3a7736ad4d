import type { MessageOf } from "../../../common/client/index.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { column, type View } from "../formats/columns.ts";

const NODES: View = {
  name: "hostid",
  columns: [
    column("node", { member: "peer", isWhole: true }),
    column("up", { of: ({ isup }) => (isup === true ? "yes" : "no") }),
    column("datacenter"),
    column("rack"),
    column("port", { isWide: true }),
    column("id", { member: "hostid", isWide: true }),
  ],
};
/** A node of Cassandra is away, or a tenant has lost its data. */
const DEFECTIVE = 2;

/** `odp cluster` */
export const CLUSTER_COMMAND: CommandDeclaration = {
  name: "cluster",
  isReading: true,
  summary: "show the nodes of Cassandra as the controller sees them, and tenants whose data is gone",
  details: "A controller with the embedded store shows itself. odp doctor shows whether the controller is ready.",
  exitCodes: { 0: "all is there", 2: "a node is away, or a tenant has lost its data" },
  run: cluster,
};

async function cluster({ shell }: Call): Promise<number> {
  const client = await shell.client();
  const { datastore, lost = [] } = await client.call("getClusterInfo", {}, { signal: shell.ended() });
  await shell.show(datastore, NODES);
  for (const { tenant, keyspace } of lost) shell.note(`The data of the tenant ${tenant} is gone: restore ${keyspace}.`);
  return codeOf({ datastore, lost });
}

/** Exit code of the command. */
export function codeOf({ datastore, lost = [] }: Pick<MessageOf<"getClusterInfo">, "datastore" | "lost">): number {
  return lost.length > 0 || datastore.some(({ isup }) => !isup) ? DEFECTIVE : 0;
}
