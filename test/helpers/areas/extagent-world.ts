import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  DeploymentService,
  depotClasses,
  depotRoutes,
  DepotService,
  WaitingDeployments,
} from "../../../controller/areas/depots/index.ts";
import { ExtAgentService } from "../../../controller/areas/extagents/index.ts";
import { extagentsRoutes } from "../../../controller/areas/extagents/routes.ts";
import { hostRoutes } from "../../../controller/areas/hosts/routes.ts";
import { QueryService } from "../../../controller/areas/query/index.ts";
import type { Endpoint } from "../../../controller/http/interface/endpoint.ts";
import { openTestHosts, type TestHosts } from "../hosts/hosts.ts";
import { tarOf } from "../runs/archives.ts";
import { NAMED_HOSTS } from "../hosts/named-hosts.ts";

/** External agents on hosts with a real agent and over SSH, with a real store. */
export interface ExtAgentWorld extends AsyncDisposable {
  readonly hosts: TestHosts;
  readonly agents: ExtAgentService;
  /** Endpoints of hosts, depots and external agents. */
  readonly endpoints: readonly Endpoint[];
  /** A folder that is removed after the tests. */
  readonly folder: string;
  /** Stores a version of the depot `probe`. */
  upload(version: string, files: Readonly<Record<string, string>>): Promise<void>;
  mql(text: string): ReturnType<QueryService["rows"]>;
}

export async function openExtAgents(): Promise<ExtAgentWorld> {
  const hosts = await openTestHosts();
  const { engine: stores, objects, runtime, notifications } = hosts;
  const depots = new DepotService({ stores, runtime, objects });
  for (const definition of depotClasses(depots)) objects.registerSystemClass(definition);
  const deployments = new DeploymentService({
    targets: NAMED_HOSTS,
    ...{ depots, stores, objects, notifications, runtime },
    hosts: hosts.hosts,
    stored: { outcome: () => Promise.resolve(undefined) },
    controllers: { own: "this", has: () => true },
  });
  const waiting = new WaitingDeployments({
    ...{ deployments, stores, objects, runtime },
    hosts: hosts.hosts,
    authors: { present: () => Promise.resolve(hosts.principal()) },
  });
  const query = new QueryService({ objects, runtime });
  const folder = await mkdtemp(join(tmpdir(), "odp-extagents-"));
  const agents = new ExtAgentService({
    targets: NAMED_HOSTS,
    depots,
    deployments,
    hosts: hosts.hosts,
    clock: runtime.clock,
  });
  return {
    hosts,
    agents,
    endpoints: [
      ...hostRoutes(hosts.hosts),
      ...depotRoutes({ depots, deployments, waiting }),
      ...extagentsRoutes(agents),
    ],
    folder,
    async upload(version, files) {
      const path = join(folder, `probe-${version}.tar`);
      const entries = Object.entries(files).map(([name, content]) => ({ name, content, mode: 0o755 }));
      await writeFile(path, tarOf(entries));
      const uploads = [{ filename: "probe.tar", path, size: 1 }];
      await depots.create(hosts.principal(), { name: "probe", version }, uploads);
    },
    mql: (text) => query.rows(hosts.principal(), text),
    async [Symbol.asyncDispose]() {
      await hosts[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * An external agent as a shell script. It leaves a daemon that holds the standard output of its start and writes to it all
 * the time, refuses to start twice, and ends with the signal TERM or with its folder. Its version is in `version`.
 */
export function probeProgram(version: string): Readonly<Record<string, string>> {
  return { "probe.sh": PROBE, version: `${version}\n` };
}

const PROBE = `#!/bin/sh
if [ -e pid ] && kill -0 "$(cat pid)" 2>/dev/null; then echo "it runs already" >&2; exit 3; fi
( trap 'exit 0' TERM; cat version > running; while [ -e "$PWD" ]; do echo tick; sleep 0.05; done ) &
echo $! > pid
`;
