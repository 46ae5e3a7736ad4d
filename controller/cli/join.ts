import { AGENT_NODE_FLAGS } from "../../common/agent/node-flags.ts";
import { column, type View } from "./formats/columns.ts";

export interface JoinToken {
  readonly token: string;
  /** Where hosts reach the controller; absent from one that does not know it. */
  readonly controller?: string;
}

/** The line that makes a host join, as it is typed there. */
export function joinLine({ token, controller }: JoinToken, host: string | undefined, askedUrl: string): string {
  const values = {
    ODP_AGENT_CONTROLLER: controller ?? askedUrl,
    ODP_AGENT_TOKEN: token,
    ...(host !== undefined && { ODP_AGENT_NAME: host }),
    ODP_AGENT_DIR: "/var/lib/odp-agent",
  };
  return `${Object.entries(values)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ")} node ${AGENT_NODE_FLAGS.join(" ")} agent.js`;
}

export const TOKEN_VIEW: View = {
  name: "id",
  columns: [
    column("id", { isWhole: true }),
    column("host", { of: ({ host }) => (host === "" ? "any new host" : host) }),
    column("user"),
    column("expires", { isTime: true, isNear: true }),
    column("used", { isTime: true }),
    column("by", { member: "usedBy" }),
  ],
};
