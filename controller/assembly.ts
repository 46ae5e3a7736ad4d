import type { FastifyInstance } from "fastify";
import { buildHttp } from "./app.ts";
import { partsOf } from "./area.ts";
import { ownAddresses } from "./areas/hosts/index.ts";
import { publishChanges, wantsChanges } from "./areas/notifications/index.ts";
import { countQuotaOf } from "./areas/tenants/index.ts";
import { areasOf, type Services } from "./assembly/areas.ts";
import { core } from "./assembly/core.ts";
import { data } from "./assembly/data.ts";
import { execution } from "./assembly/execution.ts";
import { hostServices } from "./assembly/hosts.ts";
import { identity } from "./assembly/identity.ts";
import { Lifetime } from "./assembly/lifetime.ts";
import type { AssemblyOptions } from "./assembly/options.ts";
import { scripting } from "./assembly/scripting.ts";
import { signInOf } from "./assembly/signin.ts";
import { AgentServer, type PeerServices } from "./grpc/index.ts";

/** All services of a controller, connected to those they need; nothing listens yet. */
export type Assembly = Awaited<ReturnType<typeof assemble>>;

/**
 * Makes the services in six steps, each from those made before. What an earlier step needs of a later one goes through
 * a named extension point (`assembly/points.ts`).
 */
export async function assemble(options: AssemblyOptions) {
  const services = await servicesOf(options);
  const { points, hostObjects, objects, notifications, stores, tenants, runtime } = services;
  points.areas.list(areasOf(services));
  points.requireFilled();
  // Finds a function that two areas declare.
  hostObjects();
  const areas = points.areas.all;
  for (const definition of partsOf(areas, ({ classes }) => classes)) objects.registerSystemClass(definition);
  objects.unrestricted.onChange(
    (events) => publishChanges(notifications, events),
    (tenant) => wantsChanges(notifications, tenant),
  );
  const { users, groups, query, rules, hosts, keys, resealing, sealedKinds, depots, policies, jobs, jobGroups } =
    services;
  const { config, history, audit, runs } = services;
  const peerServices = peerServicesOf(services);
  return {
    ...{
      areas,
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
    },
    ...{ config, history, audit, notifications, runs, peerServices },
    /** Kinds of sealed values that the areas list. */
    sealedKinds,
    endpoints: partsOf(areas, (area) => area.endpoints),
    sockets: partsOf(areas, (area) => area.sockets),
    agents: agentServerOf(services, peerServices),
    http: (): Promise<FastifyInstance> => httpOf(services),
    ...lifeOf(services, new Lifetime({ areas, stores, tenants, runtime })),
  };
}

async function servicesOf(options: AssemblyOptions): Promise<Services> {
  const ground = await core(options);
  const withIdentity = { ...ground, ...(await identity(ground)) };
  const withData = { ...withIdentity, ...data(withIdentity) };
  const withHosts = { ...withData, ...(await hostServices(withData)) };
  const withScripting = { ...withHosts, ...scripting(withHosts) };
  return { ...withScripting, ...execution(withScripting) };
}

/** Answers of this controller to the others. */
function peerServicesOf({ hosts, recent, notifications }: Services): PeerServices {
  return {
    serve: (watch, listener) => hosts.peers.serve(watch, listener),
    tunnel: (place, signal) => hosts.peers.openTunnel(place, signal),
    refreshHere: (tenant, names) => hosts.peers.refreshHere(tenant, names),
    recent: (tenant, policy) => recent.of(tenant, policy),
    attach: (outlet) => notifications.attach(outlet),
  };
}

function agentServerOf({ runtime, stores, hosts }: Services, peers: PeerServices): AgentServer {
  return new AgentServer({
    runtime,
    open: (caller, hello, channel) =>
      stores.whileOpen(caller.tenant, () => hosts.agents.openSession(caller, hello, channel)),
    content: (caller, digest) => hosts.agents.content(caller, digest),
    tunnel: (caller, opened, stream) => hosts.agents.takeTunnel(caller, opened, stream),
    certificate: () => hosts.agents.serverCertificate(),
    authorities: hosts.agents.authorities,
    peers,
  });
}

function httpOf(services: Services): Promise<FastifyInstance> {
  const { options, points, engine, runtime, stores, tenants, users, groups, access, audit, rowChecks, policies } =
    services;
  const { dataDir, version, publicNames, trustedProxies, hsts, metricsReaders, bodyMemoryMib, callLog, manual } =
    options;
  const areas = points.areas.all;
  return buildHttp({
    runtime,
    endpoints: partsOf(areas, (area) => area.endpoints),
    sockets: partsOf(areas, (area) => area.sockets),
    services: {
      signIn: signInOf({ users, groups, access, gate: stores }),
      audit,
      ready: () => tenants.ready(),
      damaged: () => rowChecks.damaged(),
      heldTargets: () => policies.targets.heldCount,
      storesAreRemote: engine.isRemote,
      callQuotaOf: (tenant) => countQuotaOf(stores.configOf(tenant)).calls,
      onTenantLeft: (listener) => stores.onLeave(listener),
    },
    settings: {
      ...{ dataDir, version, publicNames },
      ...(trustedProxies && { trustedProxies }),
      ...(hsts && { hsts }),
      ...(metricsReaders && { metricsReaders }),
      ...(bodyMemoryMib && { bodyMemoryMib }),
    },
    levels: partsOf(areas, (area) => area.levels),
    ...(callLog && { callLog }),
    ...(manual && { manual }),
  });
}

function lifeOf({ options, membership, links, hosts }: Services, lifetime: Lifetime) {
  const { publicNames, agentPort } = options;
  return {
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
