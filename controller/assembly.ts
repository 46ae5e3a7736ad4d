import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { BLOB_SWEEP_GRACE_MS, BLOB_SWEEP_INTERVAL_MS, MAINTENANCE_INTERVAL_MS } from "../common/limits.ts";
import { buildHttp } from "./app.ts";
import { AUDIT_CLASS, AuditService, StoredTrail } from "./areas/audit/index.ts";
import { ClusterService, clusterRoutes, Membership } from "./areas/cluster/index.ts";
import { DeploymentService, depotRoutes, DepotService, registerDepotClasses } from "./areas/depots/index.ts";
import { FileService, fileRoutes } from "./areas/files/index.ts";
import {
  hostRoutes,
  HostService,
  ownAddresses,
  StoredCommands,
  type EntrySink,
  type Peers,
} from "./areas/hosts/index.ts";
import { IngestService, RecordWriter } from "./areas/ingest/index.ts";
import { JobRuns, jobRoutes, JobService, registerJobClasses } from "./areas/jobs/index.ts";
import { NotificationHub, notificationSockets } from "./areas/notifications/index.ts";
import { ObjectService, type ObjectChangeEvent } from "./areas/objects/index.ts";
import { systemPrincipal } from "./areas/permissions/index.ts";
import {
  POLICY_GAP_PATH,
  POLICY_RUN_PATH,
  policyRoutes,
  PolicyService,
  registerPolicyClasses,
} from "./areas/policies/index.ts";
import { queryRoutes, QueryService, searchRoutes, SearchService } from "./areas/query/index.ts";
import { FileParser, ruleRoutes, RuleService } from "./areas/rules/index.ts";
import { schemaRoutes, SchemaService } from "./areas/schema/index.ts";
import { TenantService } from "./areas/tenants/index.ts";
import { ExportService, ImportService, transferRoutes } from "./areas/transfer/index.ts";
import { userRoutes, UserService } from "./areas/users/index.ts";
import { AgentServer, PeerLinks, type DialPeer, type PeerServices } from "./grpc/index.ts";
import type { Endpoint } from "./http/endpoint.ts";
import { Maintenance } from "./maintenance.ts";
import type { Runtime } from "./runtime.ts";
import type { SecretBox } from "./secrets/index.ts";
import type { Engine } from "./store/engine.ts";

/** What `main.ts` has to bring. */
export interface AssemblyOptions {
  readonly engine: Engine;
  readonly runtime: Runtime;
  readonly secrets: SecretBox;
  /** Of this run of this controller. */
  readonly controllerId: string;
  readonly publicNames: readonly string[];
  readonly dataDir: string;
  readonly version: string;
  /** The agent port, once it listens. */
  readonly agentPort: () => number;
  /** The way to other controllers: gRPC when absent. */
  readonly dialPeer?: DialPeer;
}

/** Every service, tied to those it needs, and nothing listening yet. The lists below are the controller's table of contents. */
export type Assembly = Awaited<ReturnType<typeof assemble>>;

export async function assemble(options: AssemblyOptions) {
  const { engine, runtime, secrets, controllerId, publicNames, agentPort } = options;
  const stores = engine;
  const notifications = new NotificationHub({ log: runtime.log });
  const tenants = new TenantService({ runtime, engine });
  const ospaceOf = (tenant: string): Promise<string> => tenants.ospaceOf(tenant);

  const objects = new ObjectService({ stores, runtime });
  objects.registerSystemClass(AUDIT_CLASS);
  const audit = new AuditService({
    runtime,
    trail: new StoredTrail({ clock: runtime.clock, stores, objects, ospaceOf }),
  });
  const users = new UserService({ runtime, stores, tenants, audit });
  const sortFolder = join(options.dataDir, "sorts");
  const membership = await Membership.open({
    kv: (await stores.system()).kv,
    runtime,
    controllerId,
    version: options.version,
  });
  const query = new QueryService({
    objects,
    runtime,
    audit,
    sortFolder,
    batches: { stores, controllers: membership, objects, runtime },
  });
  const search = new SearchService({ objects, runtime, audit, sortFolder });
  const rules = new RuleService({ stores, objects });
  const files = new FileService({ stores, objects, nowMs: () => runtime.clock.nowMs(), random: runtime.random });
  const fileParser = new FileParser({ rules, objects, files });
  const cluster = new ClusterService({ engine });

  // Hosts, policies, ingest and the other controllers know each other; what is asked for later is reached through these.
  const sink: EntrySink = {
    acknowledged: (source) => ingest.acknowledged(source),
    accept: (source, entries) => ingest.accept(source, entries),
  };
  const peers: Peers = {
    watch: (controller, watch, watcher) => links.watch(controller, watch, watcher),
    refresh: (controller, tenant, names) => links.refresh(controller, tenant, names),
  };
  const otherAddresses = () => membership.others().map(({ addresses }) => addresses);
  const desired = { desired: (tenant: string, host: string) => policies.desired(tenant, host) };
  const actAs = async (tenant: string, traceparent: string) =>
    systemPrincipal(tenant, await ospaceOf(tenant), traceparent);
  const hosts = await HostService.open({
    stores,
    objects,
    query,
    secrets,
    runtime,
    controllerId,
    actAs,
    desired,
    sink,
    publicNames,
    agentPort,
    peers,
    otherAddresses,
  });
  const links = new PeerLinks({
    runtime,
    others: () => membership.others(),
    certificate: () => hosts.peerCertificate(),
    authorities: hosts.authorities,
    interests: () => notifications.interests(),
    receive: (tenant, notification) => notifications.receive(tenant, notification),
    ...(options.dialPeer && { dial: options.dialPeer }),
  });
  notifications.onInterests(() => links.tellInterests());
  const depots = new DepotService({ stores, runtime });
  const stored = new StoredCommands({ objects, actAs });
  const deployments = new DeploymentService({ depots, hosts, stores, stored, objects, notifications, runtime });
  const policies = new PolicyService({ stores, runtime, rules, depots, hosts });
  const jobs = new JobService({ stores, runtime });
  const runs = new JobRuns({ stores, runtime, jobs, hosts, stored, objects, notifications, controllers: membership });
  const exports = new ExportService({ query, objects });
  const imports = new ImportService({ stores, objects, notifications, runtime, controllers: membership });
  registerDepotClasses(objects, depots);
  registerPolicyClasses(objects, policies);
  registerJobClasses(objects, jobs);
  const records = new RecordWriter({ objects, classes: { runs: POLICY_RUN_PATH, gaps: POLICY_GAP_PATH } });
  const ingest = new IngestService({ stores, runtime, rules, records, commands: hosts.commands, ospaceOf });
  const maintain = async (tenant: string): Promise<void> => {
    await runs.maintain(tenant);
    await deployments.maintain(tenant);
    await policies.maintain(tenant);
    await query.maintain(tenant);
    await imports.maintain(tenant);
  };
  const sweep = async (tenant: string): Promise<void> =>
    void (await (await stores.tenant(tenant)).blobs.sweep(BLOB_SWEEP_GRACE_MS));
  const recurring = new Maintenance({ runtime, tenants, intervalMs: MAINTENANCE_INTERVAL_MS, maintain });
  const maintenance = [
    recurring,
    new Maintenance({ runtime, tenants, intervalMs: BLOB_SWEEP_INTERVAL_MS, maintain: sweep }),
  ];
  objects.onChange(
    (events) => publishChanges(notifications, events),
    (tenant) => notifications.wanted(tenant, "datachange"),
  );

  const endpoints: readonly Endpoint[] = [
    ...userRoutes({ users, tenants }),
    ...queryRoutes({ query }),
    ...searchRoutes({ search }),
    ...schemaRoutes(new SchemaService({ objects, query })),
    ...ruleRoutes({ rules, fileParser }),
    ...hostRoutes(hosts),
    ...depotRoutes(depots, deployments),
    ...policyRoutes(policies),
    ...jobRoutes({ jobs, runs, audit }),
    ...fileRoutes({ files }),
    ...transferRoutes({ exports, imports }),
    ...clusterRoutes(cluster),
  ];
  const sockets = notificationSockets(notifications);
  const peerServices: PeerServices = {
    serve: (watch, teller) => hosts.serve(watch, teller),
    refreshHere: (tenant, names) => hosts.refreshHere(tenant, names),
    attach: (outlet) => notifications.attach(outlet),
  };
  const agents = new AgentServer({
    runtime,
    open: (identity, hello, channel) => hosts.openSession(identity, hello, channel),
    content: (identity, digest) => hosts.content(identity, digest),
    certificate: () => hosts.serverCertificate(),
    authorities: hosts.authorities,
    peers: peerServices,
  });

  return {
    endpoints,
    agents,
    tenants,
    users,
    objects,
    query,
    rules,
    hosts,
    depots,
    policies,
    jobs,
    runs,
    peerServices,
    http: (): Promise<FastifyInstance> =>
      buildHttp({
        runtime,
        endpoints,
        sockets,
        services: { signIn: users, audit, ready: () => engine.ready() },
        settings: { dataDir: options.dataDir, version: options.version, publicNames },
        levels: [
          {
            name: "odp_object_changes_waiting",
            help: "Changes of objects that are stored and not taken by their subscribers.",
            value: () => objects.changesWaiting,
          },
          { name: "odp_agent_sessions", help: "Agents connected to this controller.", value: () => hosts.sessionCount },
          {
            name: "odp_agent_entries_waiting_bytes",
            help: "What agents sent and is not stored yet.",
            value: () => hosts.waitingBytes,
          },
        ],
      }),
    /** What a crash left half done in a tenant is set right. */
    async repair(tenant: string): Promise<void> {
      await hosts.reconcile(tenant);
      await policies.repair(tenant);
      await runs.maintain(tenant);
      await deployments.maintain(tenant);
      await query.maintain(tenant);
      await imports.maintain(tenant);
    },
    /** Tells the others and the agents where this controller is reached, and dials the others; to be called when its ports are open. */
    async join(url: string): Promise<void> {
      membership.onChange(() => {
        // What a controller that went was working on is taken over.
        recurring.soon();
        links.follow();
        hosts.controllersChanged();
      });
      links.follow();
      await membership.announce({ addresses: ownAddresses({ publicNames, agentPort }), url });
    },
    /** What recurs, until `close`. */
    start(): void {
      users.start();
      for (const work of maintenance) work.start();
    },
    /** In the order that lets each finish with what it needs still there; the ports are closed before. */
    async close(): Promise<void> {
      users.stop();
      await query.close();
      for (const work of maintenance) await work.stop();
      await runs.close();
      await imports.close();
      links.close();
      await membership.close();
      await hosts.close();
      await objects.close();
    },
  };
}

/** A frame per changed object, for those who listen to `datachange`; made for nobody otherwise. */
function publishChanges(notifications: NotificationHub, events: readonly ObjectChangeEvent[]): void {
  for (const { tenant, class: path, id, action, fields } of events) {
    if (!notifications.wanted(tenant, "datachange")) continue;
    const msg = JSON.stringify({ class: path, id, action, fields });
    notifications.publish(tenant, {
      keyspace: ospaceIn(path),
      source: "objects",
      subject: "datachange",
      title: path,
      reply: "",
      msg,
    });
  }
}

/** A class path begins with its tenant's name space. */
function ospaceIn(path: string): string {
  return `/${path.split("/")[1] ?? ""}`;
}
