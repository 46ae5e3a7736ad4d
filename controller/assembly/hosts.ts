import { TARGET_HOLD_HOSTS, TARGET_HOLD_PERCENT } from "../../common/limits.ts";
import { DeploymentService, DepotService, WaitingDeployments } from "../areas/depots/index.ts";
import { HostService, HostTargets, StoredCommands } from "../areas/hosts/index.ts";
import { SentPolicies } from "../areas/ingest/index.ts";
import { PolicyService } from "../areas/policies/index.ts";
import { countQuotaOf } from "../areas/tenants/index.ts";
import type { Core } from "./core.ts";
import type { Data } from "./data.ts";
import type { Identity } from "./identity.ts";
import { peerLinks } from "./peer-links.ts";

export type HostServices = Awaited<ReturnType<typeof hostServices>>;

/** Monitored hosts: their agents, what is deployed to them, and the other controllers that reach them. */
export async function hostServices(from: Core & Identity & Data) {
  const { options, points, runtime, stores, objects, membership, notifications, use, rules, actAs } = from;
  const sent = new SentPolicies({ stores, desired: points.policies.offered });
  const hosts = await openHosts(from, sent);
  points.hostCounts.fill({
    agents: (tenant) => hosts.agents.enrolledCount(tenant),
    servers: async (tenant) => hosts.count(await actAs(tenant, "")),
  });
  const links = peerLinks({ runtime, membership, hosts, notifications, dial: options.dialPeer });
  points.peers.fill(links);
  const targets = new HostTargets({ query: from.query });
  const depots = new DepotService({ stores, runtime, objects, room: use });
  const stored = new StoredCommands({ objects, actAs });
  const deployments = new DeploymentService({
    ...{ depots, hosts, targets, stores, stored, objects, notifications, runtime },
    controllers: membership,
  });
  const waiting = new WaitingDeployments({ deployments, hosts, stores, objects, runtime, authors: from.users });
  hosts.onPresence(({ tenant, host, online }) => {
    if (online) waiting.came(tenant, host);
  });
  points.begunDeployments.fill({ kind: "deployments", goesOn: (...whose) => deployments.goesOn(...whose) });
  const policies = new PolicyService({
    ...{ stores, runtime, rules, depots, hosts, targets, objects, actAs },
    controllers: membership,
    authors: from.users,
    limit: options.targetHold ?? { percent: TARGET_HOLD_PERCENT, hosts: TARGET_HOLD_HOSTS },
  });
  points.policies.fill(policies);
  return { sent, hosts, targets, links, depots, stored, deployments, waiting, policies };
}

function openHosts(from: Core & Identity & Data, sent: SentPolicies): Promise<HostService> {
  const { options, points, stores, objects, query, secrets, runtime, membership, audit, actAs, licences } = from;
  const { controllerId, publicNames, agentPort } = options;
  return HostService.open({
    ...{ stores, objects, query, secrets, runtime, controllerId, audit, actAs, publicNames, agentPort },
    controllers: membership,
    desired: sent,
    sink: points.entries.offered,
    peers: points.peers.offered,
    otherAddresses: () => membership.others().map(({ addresses }) => addresses),
    given: (tenant, host, commandId) => points.commands.offered.gave(tenant, host, commandId),
    leads: (place) => points.proxied.offered.leads(place),
    onChanged: (tenant, host) => points.policies.offered.targets.changed.add(tenant, host),
    onRemoved: async (tenant, host) => {
      await sent.forget(tenant, host);
      await points.entries.offered.forget(tenant, host);
    },
    limits: async (tenant) => ({
      ...(await licences.limits(tenant)),
      agentQuota: countQuotaOf(stores.configOf(tenant)).agents,
    }),
    ...(options.sshTrustFirstKey !== undefined && { sshTrustFirstKey: options.sshTrustFirstKey }),
  });
}
