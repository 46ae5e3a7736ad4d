import { isOdpError, type OdpClient } from "../../../common/client/index.ts";
import { CLI_RUNS_MAX } from "../../../common/limits.ts";
import { counted } from "../../../common/text/counted.ts";

/** State of a thing at one look. */
export interface Look {
  readonly isReached: boolean;
  /** True if the state can no longer be reached. */
  readonly isLost?: boolean;
  /** Reason why it is not reached, for people. */
  readonly text: string;
}

export interface Asking {
  readonly client: Pick<OdpClient, "call">;
  readonly signal: AbortSignal;
  /** Hosts on which a depot has to be. */
  readonly hosts: readonly string[];
}

type Condition = (name: string, asking: Asking) => Promise<Look>;

/** States that can be waited for by kind; the first one is the default. */
export const CONDITIONS: Readonly<Record<string, Readonly<Record<string, Condition>>>> = {
  host: {
    online: (name, asking) => hostLook(name, "online", asking),
    offline: (name, asking) => hostLook(name, "offline", asking),
  },
  policy: { running: policyLook },
  run: { ended: (runId, asking) => runLook(runId, false, asking), ok: (runId, asking) => runLook(runId, true, asking) },
  deployment: {
    ended: (depot, asking) => deploymentLook(depot, false, asking),
    ok: (depot, asking) => deploymentLook(depot, true, asking),
  },
  depot: { present: depotLook },
};

async function hostLook(name: string, wanted: "online" | "offline", { client, signal }: Asking): Promise<Look> {
  const found = await unlessMissing(client.call("getHostByName", { path: { name } }, { signal }));
  return {
    isReached: found?.status === wanted,
    text: `${name} ${found === undefined ? "is unknown" : `is ${found.status}`}`,
  };
}

/** A policy runs when the agents of all its hosts say so. */
async function policyLook(name: string, { client, signal }: Asking): Promise<Look> {
  const policy = await unlessMissing(client.call("getMonitoringPolicyByName", { path: { name } }, { signal }));
  if (policy === undefined) return { isReached: false, text: `there is no policy ${name}` };
  const path = policy.class.replace(/[^/]+$/, "policystate");
  const mql = `select host, state, wanted, message from ${path} where policy = ? order by host limit -1`;
  const body = { mql, values: [name] };
  const known = await client.call("postMxobjectMql", { body }, { signal, isRepeatable: true });
  const states = known.filter(({ wanted }) => wanted === true);
  if (states.length === 0) return { isReached: false, text: `${name} is on no host` };
  const others = states
    .filter(({ state }) => state !== "running")
    .map(({ host, state, message }) => `${String(host)}: ${String(state)}${message ? ` (${String(message)})` : ""}`);
  return { isReached: others.length === 0, text: `${name} does not run on ${few(others)}` };
}

/** A run ends as a whole: no host and no script of it follows. It ended well if all that began did, and something did. */
async function runLook(runId: string, isOkWanted: boolean, { client, signal }: Asking): Promise<Look> {
  const found = await unlessMissing(client.call("getJobRunByRunid", { path: { runid: runId } }, { signal }));
  if (found === undefined) return { isReached: false, text: `there is no run ${runId}` };
  const { state, hosts, scripts } = found;
  const told = [...countsOf(hosts, "host"), ...countsOf(scripts, "script")].join(", ") || "no host";
  if (state !== "ended")
    return { isReached: false, text: `${runId} ${state === "waiting" ? "waits" : "goes on"}: ${told}` };
  const states = [...Object.keys(hosts), ...Object.keys(scripts)];
  const isOk = states.length > 0 && states.every((one) => one === "ok");
  return { isReached: isOk || !isOkWanted, isLost: isOkWanted && !isOk, text: `${runId} has ended: ${told}` };
}

/** `2 hosts ok` for each state. */
function countsOf(counts: Readonly<Record<string, number>>, one: string): readonly string[] {
  return Object.entries(counts).map(([state, count]) => `${counted(count, one)} ${state}`);
}

/** The newest deployment of the depot on each host. One that was undone since is none. */
async function deploymentLook(text: string, isOkWanted: boolean, asking: Asking): Promise<Look> {
  const { name, version } = versionIn(text);
  const { client, signal, hosts } = asking;
  const depot = await unlessMissing(client.call("getMonitoringDepotByName", { path: { name } }, { signal }));
  if (depot === undefined) return { isReached: false, text: `there is no depot ${name}` };
  const path = depot.class.replace(/[^/]+$/, "deployment");
  const newest = new Map<string, Ended>();
  for (const row of await deploymentsOf(name, path, asking)) {
    const isOther = version !== "" && row.version !== "" && row.version !== version;
    const isVain = row.action === "undeploy" && row.state !== "ok";
    if (!newest.has(row.host) && !isOther && !isVain) newest.set(row.host, row);
  }
  const deployed = [...newest.values()].filter(({ action }) => action !== "undeploy");
  const missing = hosts.filter((host) => !deployed.some((row) => row.host === host));
  if (missing.length > 0) return { isReached: false, text: `${text} was not deployed yet to ${few(missing)}` };
  if (deployed.length === 0) return { isReached: false, text: `${text} was not deployed yet` };
  return ended(deployed, isOkWanted);
}

/** Deployments and undeployments of a depot, newest first; per host if hosts are given, so that none is crowded out. */
async function deploymentsOf(name: string, path: string, asking: Asking): Promise<readonly Ended[]> {
  const mql = `select host, state, version, action from ${path} where depot = ?`;
  const rest = ` order by vtime desc limit ${CLI_RUNS_MAX}`;
  if (asking.hosts.length === 0) return selected(asking, mql + rest, [name]);
  const lists = await Promise.all(
    asking.hosts.map((host) => selected(asking, `${mql} and host = ?${rest}`, [name, host])),
  );
  return lists.flat();
}

/** A depot is at the controller, and on each of the hosts that are given. */
async function depotLook(text: string, { client, signal, hosts }: Asking): Promise<Look> {
  const { name, version } = versionIn(text);
  const request = { path: { name }, ...(version !== "" && { query: { version } }) };
  const depot = await unlessMissing(client.call("getMonitoringDepotByName", request, { signal }));
  if (depot === undefined) return { isReached: false, text: `there is no depot ${text}` };
  const known = hosts.length === 0 ? [] : await client.call("getHost", {}, { signal });
  const missing = hosts.filter((host) => {
    const has = known.find((one) => one.host === host)?.depot[name];
    return has === undefined || (version !== "" && !versionsOf(has).includes(version));
  });
  return { isReached: missing.length === 0, text: `${text} is not on ${few(missing)}` };
}

interface Ended {
  readonly host: string;
  readonly state: string;
  readonly version: string;
  readonly action: string;
}

function ended(rows: readonly Ended[], isOkWanted: boolean): Look {
  const others = rows.filter(({ state }) => state !== "ok").map(({ host, state }) => `${host}: ${state}`);
  const isReached = !isOkWanted || others.length === 0;
  const text =
    others.length === 0 ? `it ended well on ${counted(rows.length, "host")}` : `it ended with ${few(others)}`;
  return { isReached, isLost: !isReached, text };
}

async function selected({ client, signal }: Asking, mql: string, values: readonly string[]): Promise<readonly Ended[]> {
  const body = { mql, values: [...values] };
  const rows = await client.call("postMxobjectMql", { body }, { signal, isRepeatable: true });
  return rows.map((row) => ({
    host: String(row["host"]),
    state: String(row["state"]),
    version: String(row["version"] ?? ""),
    action: String(row["action"] ?? ""),
  }));
}

function versionIn(text: string): { readonly name: string; readonly version: string } {
  const at = text.lastIndexOf("@");
  return at < 1 ? { name: text, version: "" } : { name: text.slice(0, at), version: text.slice(at + 1) };
}

/** Versions in the JSON text of `[{version}]`. */
function versionsOf(text: string): readonly string[] {
  try {
    return (JSON.parse(text) as readonly { readonly version: string }[]).map(({ version }) => version);
  } catch {
    return [];
  }
}

const SHOWN = 5;

function few(names: readonly string[]): string {
  const rest = names.length - SHOWN;
  return `${names.slice(0, SHOWN).join("; ")}${rest > 0 ? `; and ${counted(rest, "other")}` : ""}`;
}

async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isOdpError(error, "not_found")) return undefined;
    throw error;
  }
}
