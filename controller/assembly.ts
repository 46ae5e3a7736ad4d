import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { isAppError } from "../common/errors.ts";
import { buildHttp } from "./app.ts";
import { checkAreas, partsOf, type Area } from "./area.ts";
import { AnchorFile, Anchoring, auditArea, AuditService, HeadStore, StoredTrail } from "./areas/audit/index.ts";
import {
  clusterArea,
  ClusterService,
  Membership,
  RepairService,
  RowCheckService,
  ScrubService,
} from "./areas/cluster/index.ts";
import {
  configArea,
  ConfigCache,
  ConfigChanges,
  ConfigEntries,
  ConfigHistory,
  ConfigImport,
  ConfigSchemas,
  ConfigService,
  ConfigWatch,
  schemaOwner,
  sealedConfig,
} from "./areas/config/index.ts";
import { consoleLogArea, ConsoleLogService, RunLogs, SCRIPT_LOG_BOUNDS } from "./areas/consolelog/index.ts";
import { DeploymentService, depotsArea, DepotService } from "./areas/depots/index.ts";
import { filesArea, FileService } from "./areas/files/index.ts";
import { ExplainService, groupsArea, GroupService } from "./areas/groups/index.ts";
import {
  entranceOf,
  hostsArea,
  HostService,
  ownAddresses,
  sealedHosts,
  StoredCommands,
  type EntrySink,
  type Peers,
} from "./areas/hosts/index.ts";
import { KeptParts, keysArea, keysKnown, KeyService, Resealing } from "./areas/keys/index.ts";
import { licencesArea, LicenceService } from "./areas/licences/index.ts";
import { ingestArea, IngestService, RecordWriter, RuleRetries, SentPolicies } from "./areas/ingest/index.ts";
import {
  BegunRuns,
  Firings,
  JobContexts,
  JobGroups,
  JobRuns,
  jobsArea,
  JobScheduler,
  JobService,
  OutputFollowing,
  ProxiedHosts,
  RunAccess,
  RunCancelling,
  RunAges,
  RunRetention,
  RunRetrying,
  sealedJobs,
} from "./areas/jobs/index.ts";
import {
  NotificationHub,
  NotificationRights,
  notificationsArea,
  publishChanges,
  wantsChanges,
} from "./areas/notifications/index.ts";
import { ObjectService } from "./areas/objects/index.ts";
import { openidArea, OpenIdService } from "./areas/openid/index.ts";
import { systemPrincipal } from "./areas/permissions/index.ts";
import { policiesArea, POLICY_GAP_PATH, POLICY_RUN_PATH, PolicyService } from "./areas/policies/index.ts";
import { queryArea, QueryService, rowGate, SearchService } from "./areas/query/index.ts";
import {
  FileParser,
  PatternService,
  RuleBodies,
  PolicySamples,
  RecentRecords,
  RuleTrials,
  SentLines,
  RuleMemory,
  ruleOwner,
  rulesArea,
  RuleService,
} from "./areas/rules/index.ts";
import { schemaArea, SchemaService } from "./areas/schema/index.ts";
import { appcontextArea, AppcontextService } from "./areas/appcontext/index.ts";
import { identityOf, SCRIPT_NAMES, scriptsArea, ScriptService } from "./areas/scripts/index.ts";
import { tablesArea, TableService } from "./areas/tables/index.ts";
import { tagsArea, TagService } from "./areas/tags/index.ts";
import {
  CompanyService,
  countQuotaOf,
  quotaOf,
  TenantGate,
  TenantRemoval,
  tenantsArea,
  TenantService,
  tenantSizes,
  TenantUse,
} from "./areas/tenants/index.ts";
import { triggerHost, triggersArea, TriggerService } from "./areas/triggers/index.ts";
import { ExportService, ImportService, transferArea } from "./areas/transfer/index.ts";
import { sealedUsers, usersArea, UserService } from "./areas/users/index.ts";
import { Lifetime } from "./assembly/lifetime.ts";
import type { AssemblyOptions } from "./assembly/options.ts";
import { signInOf } from "./assembly/signin.ts";
import { requireScripts, scriptThreads, scriptThreadsPart, workersPart, workerThreads } from "./assembly/threads.ts";
import { AgentServer, PeerLinks, type PeerServices } from "./grpc/index.ts";
import { nodeFiles } from "./files.ts";
import { Outbound } from "./outbound/index.ts";
import { HostObjects } from "./scripting/index.ts";

/**
 * All services, connected to those they need; nothing listens yet. The lists are the controller's table of contents.
 */
export type Assembly = Awaited<ReturnType<typeof assemble>>;

export async function assemble(options: AssemblyOptions) {
  const { engine, runtime, secrets, controllerId, publicNames, agentPort, listening } = options;
  const stores = await TenantGate.open({ stores: engine, runtime, controllerId });
  const notifications = new NotificationHub({ log: runtime.log });
  const tenants = new TenantService({ runtime, engine });
  const ospaceOf = (tenant: string): Promise<string> => tenants.ospaceOf(tenant);

  const membership = await Membership.open({
    kv: (await stores.system()).kv,
    runtime,
    controllerId,
    version: options.version,
    keys: () => ({ opening: secrets.opening, sealing: secrets.keyId }),
  });
  /** True on exactly one controller, which does the work that must be done once. */
  const isFirst = (): boolean => membership.others().every(({ id }) => id > controllerId);
  const use = await TenantUse.open({
    stores,
    runtime,
    controllerId,
    quotaOf: (tenant) => quotaOf(stores.configOf(tenant)),
    sizes: (tenant) => tenantSizes({ stores, objects, actAs }, tenant),
    audit: (entry) => audit.record(entry),
    isFirst,
  });
  const objects: ObjectService = new ObjectService({
    stores,
    runtime,
    room: use,
    controllers: membership,
    triggers: { before: (...write) => triggers.before(...write), after: (...events) => triggers.after(...events) },
  });
  const anchoring = options.auditAnchorFile
    ? new Anchoring({ runtime, file: new AnchorFile(options.auditAnchorFile, nodeFiles) })
    : undefined;
  const bornMs = async (tenant: string): Promise<number> => (await tenants.get(tenant))?.createdMs ?? 0;
  const audit = new AuditService({
    runtime,
    keys: secrets,
    bornMs,
    ...(anchoring && { anchoring }),
    trail: new StoredTrail({ clock: runtime.clock, stores, objects, ospaceOf }),
    heads: new HeadStore({ stores, keys: secrets, random: runtime.random }),
  });
  const groups: GroupService = new GroupService({
    runtime,
    stores,
    seenNames: (principal) => users.directory.reader.seenNames(principal),
    left: (principal, narrowed) => users.leftByGroup(principal, narrowed),
    catalogOf: (principal) => objects.catalog(principal),
    knownNames: (principal, names) => users.directory.reader.knownNames(principal, names),
    likeName: (principal, name) => users.directory.reader.likeName(principal, name),
  });
  const users: UserService = new UserService({
    runtime,
    stores,
    tenants,
    audit,
    groups,
    objects,
    secrets,
    ...(options.passwordWords && { passwordWords: options.passwordWords }),
    authored: [
      { endsWith: (principal, username) => jobs.endsWith(principal, username) },
      { endsWith: (principal, username) => triggers.endsWith(principal, username) },
      { endsWith: (principal, username) => rules.endsWith(principal, username) },
    ],
    begun: [
      { kind: "job runs", goesOn: (principal, isTheirs) => begunRuns.goesOn(principal, isTheirs) },
      { kind: "batches of MQL", goesOn: (principal, isTheirs) => query.goesOn(principal, isTheirs) },
      { kind: "imports", goesOn: (principal, isTheirs) => imports.goesOn(principal, isTheirs) },
      { kind: "deployments", goesOn: (principal, isTheirs) => deployments.goesOn(principal, isTheirs) },
    ],
  });
  const sortFolder = join(options.dataDir, "sorts");
  secrets.begin(keysKnown(membership.all()));
  await membership.tellKeys();
  const parts = new KeptParts({
    kv: (await stores.system()).kv,
    secrets,
    runtime,
    contexts: () => partsOf(areas, ({ derivations }) => derivations),
  });
  await parts.load();
  const query = new QueryService({
    objects,
    runtime,
    audit,
    sortFolder,
    batches: { stores, controllers: membership, objects, runtime },
  });
  const search = new SearchService({ objects, runtime, audit, sortFolder, engine: () => scripts });
  const entries = new ConfigEntries({ stores, runtime });
  const cache = new ConfigCache({ entries, runtime });
  const changes = new ConfigChanges({ entries, stores, runtime, controllers: membership });
  const tables = new TableService({ stores, runtime });
  const rules = new RuleService({
    stores,
    entries,
    objects,
    engine: { run: (call, host) => requireScripts(scripts).run(call, host) },
    neededBy: (principal, rule): Promise<readonly string[]> => policies.needing(principal, rule),
    tables: async (tenant, name) => {
      try {
        return await tables.rows(await actAs(tenant, ""), name);
      } catch (error) {
        if (isAppError(error, "not_found", "invalid")) return undefined;
        throw error;
      }
    },
  });
  const ruleMemory = new RuleMemory(runtime.clock);
  const configuration = { entries, cache, changes, objects, runtime, secrets, owners: [ruleOwner(rules), schemaOwner] };
  const config = new ConfigService(configuration);
  const history = new ConfigHistory(configuration);
  const files = new FileService({
    stores,
    objects,
    runtime,
    controllers: membership,
    room: use,
    everyone: (tenant) => groups.rightsOfEveryone(tenant),
    runNames: SCRIPT_NAMES,
  });
  const workers = workerThreads(options, runtime);
  const cluster = new ClusterService({ engine, tenants, clock: runtime.clock });
  const scrubs = new ScrubService({ stores, objects, runtime, controllers: membership, bornMs });
  const repairs = new RepairService({ stores, runtime, bornMs });
  const rowChecks = new RowCheckService({ stores, runtime, controllers: membership });
  const licences: LicenceService = new LicenceService({
    stores,
    runtime,
    keys: options.licenseKeys ?? [],
    isFirst: (tenant) => tenants.isFirst(tenant),
    requireTenant: async (tenant) => void (await tenants.ospaceOf(tenant)),
    hosts: {
      agents: (tenant) => hosts.agents.enrolledCount(tenant),
      servers: async (tenant) => hosts.count(await actAs(tenant, "")),
    },
  });
  const companies = new CompanyService({
    engine,
    runtime,
    gate: stores,
    users,
    controllers: membership,
    passwordFault: users.passwordFault,
    onDue: () => removal.soon(),
    licenseOf: (tenant) => licences.shownOf(tenant),
    use,
  });

  // Hosts, policies, ingest and the other controllers depend on each other: these reach services created later.
  const sink: EntrySink = {
    acknowledged: (source) => ingest.acknowledged(source),
    told: (source, ask) => ingest.told(source, ask),
    accept: (source, batches) => ingest.accept(source, batches),
  };
  const peers: Peers = {
    watch: (controller, watch, watcher) => links.watch(controller, watch, watcher),
    tunnel: (controller, place, signal) => links.tunnel(controller, place, signal),
    refresh: (controller, tenant, names) => links.refresh(controller, tenant, names),
  };
  const otherAddresses = () => membership.others().map(({ addresses }) => addresses);
  const sent = new SentPolicies({ stores, desired: { desired: (tenant, host) => policies.desired(tenant, host) } });
  const actAs = async (tenant: string, traceparent: string) =>
    systemPrincipal(tenant, await ospaceOf(tenant), traceparent);
  const hosts = await HostService.open({
    stores,
    objects,
    query,
    secrets,
    runtime,
    controllerId,
    controllers: membership,
    audit,
    actAs,
    desired: sent,
    sink,
    publicNames,
    agentPort,
    peers,
    otherAddresses,
    given: async (tenant, host, commandId) =>
      (await runs.gave(tenant, host, commandId)) || deployments.gave(tenant, host, commandId),
    leads: (place) => proxied.leads(place),
    onRemoved: async (tenant, host) => {
      await sent.forget(tenant, host);
      await ingest.forget(tenant, host);
    },
    limits: async (tenant) => ({
      ...(await licences.limits(tenant)),
      agentQuota: countQuotaOf(stores.configOf(tenant)).agents,
    }),
    ...(options.sshTrustFirstKey !== undefined && { sshTrustFirstKey: options.sshTrustFirstKey }),
  });
  const links = new PeerLinks({
    runtime,
    others: () => membership.others(),
    certificate: () => hosts.peers.certificate(),
    authorities: hosts.agents.authorities,
    interests: () => notifications.interests(),
    receive: (tenant, notification) => notifications.receive(tenant, notification),
    ...(options.dialPeer && { dial: options.dialPeer }),
  });
  notifications.onInterests(() => links.tellInterests());
  const depots = new DepotService({ stores, runtime, objects, room: use });
  const stored = new StoredCommands({ objects, actAs });
  const deployments = new DeploymentService({
    depots,
    hosts,
    stores,
    stored,
    objects,
    notifications,
    controllers: membership,
    runtime,
  });
  const policies = new PolicyService({ stores, runtime, rules, depots, hosts, objects, actAs });
  const jobs = new JobService({ stores, runtime, objects, ...(options.zone && { zone: options.zone }) });
  const begunRuns = new BegunRuns({ stores, objects, jobs });
  const proxied = new ProxiedHosts({ stores, runtime, objects, secrets, hosts });
  const access = new RunAccess({ stores, runtime, secrets, address: options.httpUrl });
  const retention = new RunRetention({ stores, objects, runtime });
  const ages = new RunAges({ stores, objects, runtime, ospaceOf });
  const runs = new JobRuns({
    access,
    stores,
    runtime,
    secrets,
    jobs,
    hosts,
    stored,
    objects,
    notifications,
    controllers: membership,
    proxied,
    scripts: { runOfJob: (...script) => serverScripts.runOfJob(...script) },
    authors: users,
    retention,
  });
  const firings = new Firings({
    stores,
    runtime,
    runs,
    endings: runs.endings,
    authors: users,
    ospaceOf,
    zone: options.zone ?? "UTC",
  });
  const jobGroups = new JobGroups({ stores, objects, secrets, runtime });
  const following = new OutputFollowing({ stores, objects, clock: runtime.clock, appends: runs.appends });
  const exports = new ExportService({ query, objects, runtime });
  const imports = new ImportService({ stores, objects, notifications, runtime, controllers: membership });
  const consoleLogs = new ConsoleLogService({ objects, clock: runtime.clock });
  const scripts = scriptThreads(options, { runtime, functions: () => hostObjects.names });
  const bodies = new RuleBodies({
    engine: scripts,
    hostObjects: () => hostObjects,
    author: (tenant, user) => users.present(tenant, user),
    objects,
    rules,
    logs: consoleLogs,
    audit,
    memory: ruleMemory,
    runtime,
  });
  const ruleLogs = new RunLogs({ kind: "rule", logs: consoleLogs, runtime }, SCRIPT_LOG_BOUNDS);
  const lines = { rules, objects, clock: runtime.clock, workers, bodies, room: use, logs: ruleLogs };
  const fileParser = new FileParser({ ...lines, files });
  const sentLines = new SentLines({ ...lines, notifications, random: runtime.random });
  const recent = new RecentRecords();
  const trials = new RuleTrials({
    samples: new PolicySamples({ recent, policies, others: (tenant, policy) => links.recent(tenant, policy) }),
    engine: scripts,
    hostObjects: () => hostObjects,
    objects,
    rules,
    runtime,
    workers,
  });
  const retries = new RuleRetries({ objects, clock: runtime.clock });
  const records = new RecordWriter({
    recent,
    retries,
    bodies,
    gate: async (principal, path) =>
      rowGate({ principal, catalog: await objects.catalog(principal) }, path, { objects, clock: runtime.clock }),
    onFaults: (tenant) => consoleLogs.stored(tenant, "rule"),
    objects,
    classes: { runs: POLICY_RUN_PATH, gaps: POLICY_GAP_PATH },
    clock: runtime.clock,
    workers,
  });
  const ingest = new IngestService({
    stores,
    runtime,
    keys: secrets,
    rules,
    records,
    commands: hosts.agents.commands,
    sent,
    zoneOf: (principal, host) => hosts.zone(principal, host),
    ospaceOf,
  });
  const serverScripts: ScriptService = new ScriptService({
    engine: scripts,
    hostObjects: () => hostObjects,
    files,
    logs: consoleLogs,
    audit,
    runtime,
  });
  const entrance = listening && (() => entranceOf({ ...listening(), publicNames }));
  const rights = new NotificationRights({ objects });
  const triggers: TriggerService = new TriggerService({
    objects,
    engine: scripts,
    host: (author, log) => triggerHost(hostObjects, { author, log, audit }),
    audit,
    author: (tenant, user) => users.present(tenant, user),
    ospaceOf,
    controllers: membership,
    runtime,
    logs: consoleLogs,
    announce: (told) => publishChanges(notifications, told),
  });
  const removal = new TenantRemoval({
    engine,
    runtime,
    gate: stores,
    controllers: membership,
    keysOf: () => areas.flatMap((area) => area.keysOf?.bind(area) ?? []),
  });
  const sealedKinds = () => partsOf(areas, ({ sealed }) => sealed);
  const keySource = options.keySource ?? { kind: "text", text: "" };
  const resealing = new Resealing({
    secrets,
    runtime,
    controllers: membership,
    tenants,
    parts,
    kinds: sealedKinds,
    rereads: keySource.kind === "file",
    settleMs: options.keySettleMs,
  });
  const keys = new KeyService({
    secrets,
    source: keySource,
    resealing,
    kinds: sealedKinds,
    controllers: membership,
    tenants,
    companies,
    isFirst: (tenant) => tenants.isFirst(tenant),
  });
  // An area comes after those that it needs until its end: the last one ends first.
  const areas: readonly Area[] = checkAreas([
    tenantsArea({ companies, gate: stores, removal, use }),
    licencesArea(licences),
    auditArea(audit, anchoring),
    {
      name: "objects",
      maintain: async (tenant) => objects.maintain(await actAs(tenant, "")),
      leave: (tenant) => objects.leave(tenant),
      levels: [
        {
          name: "odp_object_changes_waiting",
          help: "Changes of objects that are stored and not taken by their subscribers.",
          value: () => objects.changesWaiting,
        },
      ],
      stop: () => objects.stop(),
      close: () => objects.close(),
    },
    ...(workers ? [workersPart(workers)] : []),
    ...(scripts ? [scriptThreadsPart(scripts)] : []),
    hostsArea({ hosts, entrance, sealed: sealedHosts({ stores, objects, secrets, actAs }) }),
    clusterArea({ cluster, membership, scrubs, repairs, rowChecks, objects }),
    keysArea({ keys, resealing, parts }),
    { name: "peers", close: () => links.close() },
    ingestArea({
      records,
      ingest,
      sent,
      objects,
      retries,
      tryAgain: async (tenant) =>
        retries.run(await actAs(tenant, ""), { rules, write: (batch) => records.write([batch]) }),
      isFirst,
    }),
    consoleLogArea(consoleLogs),
    jobsArea({
      jobs,
      runs,
      following,
      retrying: new RunRetrying({ runs, query }),
      cancelling: new RunCancelling({ runs, jobs, query }),
      audit,
      query,
      retention,
      ages,
      scheduler: new JobScheduler({ stores, runtime, controllers: membership, tenants, firings }),
      contexts: new JobContexts({ stores, runtime }),
      groups: jobGroups,
      sealed: sealedJobs(stores, secrets),
    }),
    depotsArea({ depots, deployments }),
    policiesArea(policies),
    queryArea({ query, search, objects }),
    transferArea({ exports, imports }),
    schemaArea(new SchemaService({ objects, query, runtime })),
    rulesArea({
      rules,
      fileParser,
      sentLines,
      trials,
      recent,
      memory: ruleMemory,
      patterns: new PatternService({ stores, runtime }),
    }),
    configArea({
      cache,
      changes,
      config,
      schemas: new ConfigSchemas(configuration, config),
      history,
      imports: new ConfigImport(configuration),
      watch: new ConfigWatch(configuration),
      sealed: sealedConfig(stores, secrets),
    }),
    filesArea(files),
    notificationsArea({ notifications, rights, log: runtime.log }),
    appcontextArea(new AppcontextService({ stores, runtime })),
    tablesArea(tables),
    tagsArea(new TagService({ stores, objects, query, runtime, controllers: membership })),
    groupsArea({
      groups,
      explaining: new ExplainService({
        groups,
        users,
        endpoints: () => endpoints,
        guardOf: async (principal, path) => (await objects.catalog(principal)).get(path)?.guard,
      }),
    }),
    triggersArea({ triggers, objects }),
    usersArea({ users, sealed: sealedUsers(stores, secrets), tenants, provider: options.openId?.name }),
    openidArea(
      new OpenIdService({
        runtime,
        secrets,
        users: users.providers,
        settings: options.openId,
        networks: options.outboundNetworks ?? [],
        isPublicOpen: options.outboundPublic,
      }),
    ),
    scriptsArea({
      scripts: serverScripts,
      outbound: new Outbound({
        networks: options.outboundNetworks ?? [],
        isPublicOpen: options.outboundPublic,
        clock: runtime.clock,
      }),
      audit,
      identity: (principal) => identityOf({ directory: users.directory.reader, tenants }, principal),
    }),
  ]);
  const hostObjects = new HostObjects(partsOf(areas, (area) => area.hostObjects));
  for (const definition of partsOf(areas, ({ classes }) => classes)) objects.registerSystemClass(definition);
  const lifetime = new Lifetime({ areas, stores, tenants, runtime });
  objects.onChange(
    (events) => publishChanges(notifications, events),
    (tenant) => wantsChanges(notifications, tenant),
  );

  const endpoints = partsOf(areas, (area) => area.endpoints);
  const sockets = partsOf(areas, (area) => area.sockets);
  const peerServices: PeerServices = {
    serve: (watch, listener) => hosts.peers.serve(watch, listener),
    tunnel: (place, signal) => hosts.peers.openTunnel(place, signal),
    refreshHere: (tenant, names) => hosts.peers.refreshHere(tenant, names),
    recent: (tenant, policy) => recent.of(tenant, policy),
    attach: (outlet) => notifications.attach(outlet),
  };
  const agents = new AgentServer({
    runtime,
    open: (identity, hello, channel) =>
      stores.whileOpen(identity.tenant, () => hosts.agents.openSession(identity, hello, channel)),
    content: (identity, digest) => hosts.agents.content(identity, digest),
    tunnel: (identity, opened, stream) => hosts.agents.takeTunnel(identity, opened, stream),
    certificate: () => hosts.agents.serverCertificate(),
    authorities: hosts.agents.authorities,
    peers: peerServices,
  });

  return {
    endpoints,
    areas,
    /** Kinds of sealed values that the areas list. */
    sealedKinds,
    sockets,
    agents,
    tenants,
    users,
    groups,
    objects,
    query,
    rules,
    hosts,
    keys,
    resealing,
    depots,
    policies,
    jobs,
    jobGroups,
    config,
    history,
    audit,
    notifications,
    runs,
    peerServices,
    http: (): Promise<FastifyInstance> =>
      buildHttp({
        runtime,
        endpoints,
        sockets,
        services: {
          signIn: signInOf({ users, groups, access, gate: stores }),
          audit,
          ready: () => tenants.ready(),
          damaged: () => rowChecks.damaged(),
          storesAreRemote: engine.isRemote,
          callQuotaOf: (tenant) => countQuotaOf(stores.configOf(tenant)).calls,
          onTenantLeft: (listener) => stores.onLeave(listener),
        },
        settings: {
          dataDir: options.dataDir,
          version: options.version,
          publicNames,
          ...(options.trustedProxies && { trustedProxies: options.trustedProxies }),
          ...(options.hsts && { hsts: options.hsts }),
          ...(options.metricsReaders && { metricsReaders: options.metricsReaders }),
          ...(options.bodyMemoryMib && { bodyMemoryMib: options.bodyMemoryMib }),
        },
        levels: partsOf(areas, (area) => area.levels),
      }),
    /** Repairs work of a tenant that a crash interrupted. */
    repair: (tenant: string): Promise<void> => lifetime.repair(tenant),
    /**
     * Announces the address of this controller to the others and to the agents, and connects to the others. Call it
     * when its ports are open.
     */
    async join(url: string): Promise<void> {
      membership.onChange(() => {
        // Takes over the work of a controller that has gone.
        lifetime.soon();
        links.follow();
        hosts.peers.controllersChanged();
      });
      links.follow();
      await membership.announce({ addresses: ownAddresses({ publicNames, agentPort }), url });
    },
    /** Starts recurring work; it runs until `close`. */
    start: (): void => lifetime.start(),
    /** Closes in an order that lets each area finish with the services it needs. The ports are closed before. */
    close: (): Promise<void> => lifetime.close(),
  };
}
