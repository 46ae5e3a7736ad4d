import { noClasses } from "../objects/memory/objects.ts";
import { beforeEach } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { MemoryStores } from "../engines/memory/stores.ts";
import { TestClock, testPrincipal, testRuntime } from "../time/runtime.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import type { CommandOutcome, DispatchOptions, HostCommand } from "../../../controller/areas/hosts/index.ts";
import type { Notification } from "../../../controller/areas/notifications/index.ts";
import type { NewRecord } from "../../../controller/areas/objects/index.ts";
import type { Principal } from "../../../controller/areas/permissions/index.ts";
import { DepotUsers } from "../../../controller/areas/depots/index.ts";
import { DeploymentService } from "../../../controller/areas/depots/deployment.ts";
import type { DeploymentRequest } from "../../../controller/areas/depots/deployment-requests.ts";
import { NAMED_HOSTS } from "../hosts/named-hosts.ts";

/** Deployments of one controller in memory, to hosts that behave as a test says. */

export const admin = testPrincipal();

interface Sent extends DispatchOptions {
  readonly tenant: string;
  readonly host: string;
  readonly command: HostCommand;
}

interface FakeHosts {
  /** How a host ends a command; by default it succeeds at once. */
  behaviour: (sent: Sent) => Promise<Partial<CommandOutcome>> | Partial<CommandOutcome>;
}

interface FakeRows {
  /** Present: no row of a deployment can be written. */
  failure: Error | undefined;
}

export let clock: TestClock;
/** Commands that hosts were sent. */
export let sent: Sent[];
/** Depots that were noted on the records of hosts, as present or gone. */
export let noted: unknown[];
/** Rows of deployments. */
export let records: { path: string; record: NewRecord }[];
export let published: Notification[];
export let hosts: FakeHosts;
export let rows: FakeRows;
export let deployments: DeploymentService;
export let stores: MemoryStores;
/** Results that agents reported, by command id. */
export let said: Map<string, CommandOutcome>;

/** Makes stores, hosts and a controller for each test of the calling file. */
export function useDeployments(): void {
  beforeEach(() => {
    clock = new TestClock();
    [sent, noted, records, published] = [[], [], [], []];
    hosts = { behaviour: () => ({}) };
    rows = { failure: undefined };
    stores = new MemoryStores();
    said = new Map();
    deployments = newDeployments(clock);
  });
}

/** Returns the deployments of a controller after a restart, or of another one. */
export const newDeployments = (by: TestClock, over: Stores = stores) =>
  new DeploymentService({
    targets: NAMED_HOSTS,
    runtime: testRuntime(by),
    stores: over,
    controllers: { own: "this", has: () => true },
    stored: { outcome: (_target, commandId) => Promise.resolve(said.get(commandId)) },
    depots: {
      toDeploy(_principal, name, version = "") {
        if (name === "none") return Promise.reject(new AppError("not_found", `There is no depot ${name}.`));
        return Promise.resolve({ name, version, files: [], command: "own" });
      },
      users: new DepotUsers(),
      isStored: (_principal, name) => Promise.resolve(name !== "none"),
    },
    hosts: {
      async dispatch(principal, host, command, options) {
        const one = { ...options, tenant: principal.tenant, host, command };
        sent.push(one);
        return {
          host,
          state: "ok",
          code: 0,
          message: "",
          startedMs: clock.nowMs(),
          endedMs: clock.nowMs(),
          ...(await hosts.behaviour(one)),
        };
      },
      depotsOn: (_principal, host) => Promise.resolve(host === "h9" ? ["none"] : []),
      noteDepot: (_principal, host, depot, present) => (noted.push({ host, ...depot, present }), Promise.resolve()),
    },
    objects: {
      unrestricted: {
        ingest(_principal, path, batch) {
          if (rows.failure) return Promise.reject(rows.failure);
          records.push(...batch.map((record) => ({ path, record })));
          return Promise.resolve([]);
        },
      },
      visible: noClasses().visible,
    },
    notifications: { publish: (_tenant, notification) => void published.push(notification) },
  });

/** Deploys web 1.0.0 to h1, unless the request says otherwise. */
export const deploy = (request: Partial<DeploymentRequest> = {}, principal: Principal = admin) =>
  deployments.deploy(principal, { hosts: ["h1"], depots: ["web"], versions: ["1.0.0"], ...request });

/** Waits until the code under test waits for the clock. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Returns host, depot and state of each outcome. */
export const states = (outcomes: Awaited<ReturnType<typeof deploy>>) =>
  outcomes.map(({ host, depot, state }) => [host, depot, state]);
