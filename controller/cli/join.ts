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
    .join(" ")} node agent.js`;
}

interface ListedToken {
  readonly id: string;
  readonly host: string;
  readonly user: string;
  readonly expires: number;
  readonly used: number;
  readonly usedBy: string;
}

/** Join tokens as rows of a table, with times that people read. */
export function tokenRows(tokens: readonly ListedToken[]): readonly Readonly<Record<string, string>>[] {
  return tokens.map(({ id, host, user, expires, used, usedBy }) => ({
    id,
    host: host === "" ? "any new host" : host,
    user,
    expires: new Date(expires).toISOString(),
    used: used === 0 ? "" : `${new Date(used).toISOString()} by ${usedBy}`,
  }));
}
