import type { Area } from "../area.ts";
import { appcontextArea, AppcontextService } from "../areas/appcontext/index.ts";
import { auditArea } from "../areas/audit/index.ts";
import { clusterArea } from "../areas/cluster/index.ts";
import { configArea, ConfigImport, ConfigSchemas, ConfigWatch, sealedConfig } from "../areas/config/index.ts";
import { consoleLogArea } from "../areas/consolelog/index.ts";
import { depotsArea } from "../areas/depots/index.ts";
import { extagentsArea, ExtAgentService } from "../areas/extagents/index.ts";
import { filesArea } from "../areas/files/index.ts";
import { ExplainService, groupsArea } from "../areas/groups/index.ts";
import { joinAddressOf, hostsArea, sealedHosts } from "../areas/hosts/index.ts";
import { ingestArea } from "../areas/ingest/index.ts";
import {
  JobContexts,
  jobsArea,
  JobScheduler,
  RunCancelling,
  RunRetrying,
  RunStates,
  sealedJobs,
} from "../areas/jobs/index.ts";
import { keysArea } from "../areas/keys/index.ts";
import { licencesArea } from "../areas/licences/index.ts";
import { NotificationRights, notificationsArea } from "../areas/notifications/index.ts";
import { openidArea, OpenIdService } from "../areas/openid/index.ts";
import { policiesArea } from "../areas/policies/index.ts";
import { queryArea } from "../areas/query/index.ts";
import { PatternService, rulesArea } from "../areas/rules/index.ts";
import { schemaArea, SchemaService } from "../areas/schema/index.ts";
import { identityOf, scriptsArea } from "../areas/scripts/index.ts";
import { tablesArea } from "../areas/tables/index.ts";
import { tagsArea, TagService } from "../areas/tags/index.ts";
import { tenantsArea } from "../areas/tenants/index.ts";
import { transferArea } from "../areas/transfer/index.ts";
import { triggersArea } from "../areas/triggers/index.ts";
import { sealedUsers, usersArea } from "../areas/users/index.ts";
import { Outbound } from "../outbound/index.ts";
import type { Core } from "./core.ts";
import type { Data } from "./data.ts";
import type { Execution } from "./execution.ts";
import type { HostServices } from "./hosts.ts";
import type { Identity } from "./identity.ts";
import type { Scripting } from "./scripting.ts";
import { scriptThreadsPart, workersPart } from "./threads.ts";

/** All services, as the areas take them. */
export type Services = Core & Identity & Data & HostServices & Scripting & Execution;

/**
 * The controller's table of contents. An area comes after those that it needs until its end, because areas close from
 * the last to the first.
 */
export function areasOf(services: Services): readonly Area[] {
  return [...foundation(services), ...work(services), ...storage(services), ...people(services)];
}

function foundation(services: Services): readonly Area[] {
  const { stores, objects, audit, anchoring, actAs, workers, scripts, hosts, secrets, membership, keys } = services;
  const { companies, removal, use, licences, cluster, scrubs, repairs, rowChecks, parts, links, options, resealing } =
    services;
  const { listening, publicNames } = options;
  const joinAddress = listening && (() => joinAddressOf({ ...listening(), publicNames }));
  return [
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
    hostsArea({
      hosts,
      joinAddress,
      sealed: sealedHosts({ stores, objects, secrets, actAs, finish: (tenant) => hosts.maintain(tenant) }),
    }),
    clusterArea({ cluster, membership, scrubs, repairs, rowChecks, objects }),
    keysArea({ keys, resealing, parts }),
    { name: "peers", close: () => links.close() },
  ];
}

function work(services: Services): readonly Area[] {
  const { stores, runtime, objects, audit, tenants, membership, secrets, query, rules, isFirst, actAs } = services;
  const { records, ingest, sent, retries, consoleLogs, jobs, runs, following, retention, ages, firings } = services;
  return [
    ingestArea({
      ...{ records, ingest, sent, objects, retries, isFirst },
      tryAgain: async (tenant) =>
        retries.run(await actAs(tenant, ""), { rules, write: (batch) => records.write([batch]) }),
    }),
    consoleLogArea(consoleLogs),
    jobsArea({
      ...{ jobs, runs, following, audit, query, retention, ages },
      retrying: new RunRetrying({ runs, query }),
      cancelling: new RunCancelling({ runs, jobs, query }),
      states: new RunStates({ stores, jobs, query }),
      scheduler: new JobScheduler({ stores, runtime, controllers: membership, tenants, firings }),
      contexts: new JobContexts({ stores, runtime }),
      groups: services.jobGroups,
      sealed: sealedJobs(stores, secrets),
    }),
    depotsArea({ depots: services.depots, deployments: services.deployments, waiting: services.waiting }),
    extagentsArea(new ExtAgentService({ ...services, clock: runtime.clock })),
    policiesArea(services),
  ];
}

function storage(services: Services): readonly Area[] {
  const { stores, runtime, objects, query, classes, search, exports, imports, secrets, configuration, config } =
    services;
  const { rules, fileParser, sentLines, trials, recent, ruleMemory, cache, changes, history } = services;
  return [
    queryArea({ query, search, objects }),
    transferArea({ exports, imports }),
    schemaArea(new SchemaService({ objects, query, classes, runtime })),
    rulesArea({
      ...{ rules, fileParser, sentLines, trials, recent },
      memory: ruleMemory,
      patterns: new PatternService({ stores, runtime }),
    }),
    configArea({
      ...{ cache, changes, config, history },
      schemas: new ConfigSchemas(configuration, config),
      imports: new ConfigImport(configuration),
      watch: new ConfigWatch(configuration),
      sealed: sealedConfig(stores, secrets),
    }),
    filesArea(services.files, services.fileSearch, services.audit),
  ];
}

function people(services: Services): readonly Area[] {
  const { options, points, stores, runtime, objects, audit, tenants, membership, secrets, query } = services;
  const { notifications, groups, users, triggers } = services;
  const networks = options.outboundNetworks ?? [];
  const isPublicOpen = options.outboundPublic;
  return [
    notificationsArea({ notifications, rights: new NotificationRights({ objects }), log: runtime.log }),
    appcontextArea(new AppcontextService({ stores, runtime })),
    tablesArea(services.tables),
    tagsArea(new TagService({ stores, objects, query, runtime, controllers: membership })),
    groupsArea({
      groups,
      explaining: new ExplainService({
        groups,
        users,
        endpoints: points.areas.parts((area) => area.endpoints),
        guardOf: async (principal, path) => (await objects.catalog(principal)).get(path)?.guard,
      }),
    }),
    triggersArea({ triggers, objects }),
    usersArea({ users, sealed: sealedUsers(stores, secrets), tenants, provider: options.openId?.name }),
    openidArea(
      new OpenIdService({ runtime, secrets, users: users.providers, settings: options.openId, networks, isPublicOpen }),
    ),
    scriptsArea({
      scripts: services.serverScripts,
      outbound: new Outbound({ networks, isPublicOpen, clock: runtime.clock }),
      audit,
      identity: (principal) => identityOf({ directory: users.directory.reader, tenants }, principal),
    }),
  ];
}
