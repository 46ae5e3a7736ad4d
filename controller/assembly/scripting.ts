import { RunLogs, SCRIPT_LOG_BOUNDS } from "../areas/consolelog/index.ts";
import { IngestService, RecordWriter, RuleRetries } from "../areas/ingest/index.ts";
import { publishChanges } from "../areas/notifications/index.ts";
import { POLICY_GAP_PATH, POLICY_RUN_PATH } from "../areas/policies/index.ts";
import { rowGate } from "../areas/query/index.ts";
import { FileParser, PolicySamples, RecentRecords, RuleBodies, RuleTrials, SentLines } from "../areas/rules/index.ts";
import { ScriptService } from "../areas/scripts/index.ts";
import { triggerHost, TriggerService } from "../areas/triggers/index.ts";
import type { Core } from "./core.ts";
import type { Data } from "./data.ts";
import type { HostServices } from "./hosts.ts";
import type { Identity } from "./identity.ts";

export type Scripting = ReturnType<typeof scripting>;
type Earlier = Core & Identity & Data & HostServices;

/** Services that run code of users (scripts, triggers, rule bodies), and services that make records by rules. */
export function scripting(from: Earlier) {
  const { points, runtime, objects, audit, membership, notifications, users, files, consoleLogs, ospaceOf } = from;
  const { scripts, hostObjects } = from;
  const serverScripts = new ScriptService({ engine: scripts, hostObjects, files, logs: consoleLogs, audit, runtime });
  const triggers = new TriggerService({
    objects,
    engine: scripts,
    host: (author, log) => triggerHost(hostObjects(), { author, log, audit }),
    audit,
    author: (tenant, user) => users.present(tenant, user),
    ospaceOf,
    controllers: membership,
    runtime,
    logs: consoleLogs,
    announce: (told) => publishChanges(notifications, told),
  });
  points.triggers.fill(triggers);
  points.authoredTriggers.fill(triggers);
  return { serverScripts, triggers, ...records(from) };
}

/** Makes the services that write the lines of files, requests and agents as records, parsed by rules. */
function records(from: Earlier) {
  const { runtime, objects, audit, users, rules, ruleMemory, consoleLogs, workers, scripts, hostObjects } = from;
  const bodies = new RuleBodies({
    engine: scripts,
    hostObjects,
    author: (tenant, user) => users.present(tenant, user),
    ...{ objects, rules, audit, runtime },
    logs: consoleLogs,
    memory: ruleMemory,
  });
  const ruleLogs = new RunLogs({ kind: "rule", logs: consoleLogs, runtime }, SCRIPT_LOG_BOUNDS);
  const lines = { rules, objects, clock: runtime.clock, workers, bodies, room: from.use, logs: ruleLogs };
  const recent = new RecentRecords();
  const trials = new RuleTrials({
    samples: new PolicySamples({
      recent,
      policies: from.policies,
      others: (tenant, policy) => from.links.recent(tenant, policy),
    }),
    engine: scripts,
    hostObjects,
    ...{ objects, rules, runtime, workers },
  });
  return {
    fileParser: new FileParser({ ...lines, files: from.files }),
    sentLines: new SentLines({ ...lines, notifications: from.notifications, random: runtime.random }),
    recent,
    trials,
    ...ingesting(from, { bodies, recent }),
  };
}

/** Services that store the entries of agents. */
function ingesting(from: Earlier, { bodies, recent }: { readonly bodies: RuleBodies; readonly recent: RecentRecords }) {
  const { points, stores, runtime, secrets, objects, rules, hosts, consoleLogs, workers, sent, ospaceOf } = from;
  const retries = new RuleRetries({ objects, clock: runtime.clock });
  const writer = new RecordWriter({
    ...{ recent, retries, bodies, objects, workers },
    gate: async (principal, path) =>
      rowGate({ principal, catalog: await objects.catalog(principal) }, path, { objects, clock: runtime.clock }),
    onFaults: (tenant) => consoleLogs.stored(tenant, "rule"),
    classes: { runs: POLICY_RUN_PATH, gaps: POLICY_GAP_PATH },
    clock: runtime.clock,
  });
  const ingest = new IngestService({
    ...{ stores, runtime, rules, sent, ospaceOf },
    keys: secrets,
    records: writer,
    commands: hosts.agents.commands,
    zoneOf: (principal, host) => hosts.zone(principal, host),
  });
  points.entries.fill(ingest);
  return { retries, records: writer, ingest };
}
